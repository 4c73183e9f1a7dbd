package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/onereply/onereply/internal/jsonstrict"
)

// bodyTimeout bounds how long a client may take to send a JSON body. The
// server has no overall read timeout, because streams outlive any.
const bodyTimeout = 30 * time.Second

// readJSON checks what a request with a JSON body says about it (415), reads it
// within the limit (413) and returns its bytes, undecoded: the key is judged
// before the body's contents are.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	return readBody(w, r, limit)
}

func checkMediaType(h http.Header) error {
	types := h.Values("Content-Type")
	if len(types) != 1 {
		return newProblem(codeUnsupportedMedia, "The request needs one Content-Type header: application/json.")
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return newProblem(codeUnsupportedMedia, "The request body must be application/json.")
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return newProblem(codeUnsupportedMedia, "The request body must be UTF-8.")
	}
	for _, coding := range h.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return newProblem(codeUnsupportedMedia, "Content codings are not supported; send the body as it is.").
				withHeader("Accept-Encoding", "identity")
		}
	}
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		// The body is not read, so the connection cannot be used again.
		w.Header().Set("Connection", "close")
		return nil, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	if err := setDeadline(control.SetReadDeadline, bodyTimeout); err != nil {
		return nil, wireError(err)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case err != nil:
		p := newProblem(codeInvalidRequest, "The request body could not be read to its end.")
		p.cause = err
		return nil, p
	}
	if err := setDeadline(control.SetReadDeadline, 0); err != nil {
		return nil, wireError(err)
	}
	return raw, nil
}

func tooLarge(limit int64) error {
	return newProblem(codeTooLarge, fmt.Sprintf("The request body is larger than %d bytes.", limit)).with("max_bytes", limit)
}

// decodeJSON reads the body into the members of into, strictly: what jsonstrict
// refuses is 400, never passed over.
func decodeJSON(raw []byte, into any) error {
	err := jsonstrict.Decode(raw, into)
	var bad *jsonstrict.Error
	if !errors.As(err, &bad) {
		return err // nil, or a mistake of ours in into
	}
	p := newProblem(codeInvalidJSON, "The request body was refused: "+bad.Error()+".")
	if bad.Path != "" {
		return p.with("pointer", bad.Path)
	}
	return p
}

// writeJSON answers with v, whose encoding cannot fail but for a bug.
func writeJSON(w http.ResponseWriter, status int, media string, v any) error {
	var body strings.Builder
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, err := io.WriteString(w, body.String())
	return wireError(err)
}

// setDeadline sets a deadline d from now, or none when d is zero. A writer that
// has no connection beneath, such as a test's recorder, needs none.
func setDeadline(set func(time.Time) error, d time.Duration) error {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	if err := set(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// errWire marks an error of the connection: the client is gone or too slow, so
// there is nobody to answer and nothing to log as our fault.
var errWire = errors.New("connection")

func wireError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errWire, err)
}
