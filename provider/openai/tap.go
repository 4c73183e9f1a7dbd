package openai

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/openai/openai-go/v3/option"
)

const (
	// startBytes is how much of a response is kept to judge one that is no stream.
	startBytes = 64 << 10
	// maxEvent bounds one event, which the SDK holds in memory whole.
	maxEvent = 8 << 20
)

var errEventTooLong = errors.New("one event of the stream is longer than 8 MiB")

// tap watches the bytes of a response on their way to the SDK, for what the SDK
// does not tell: the status of a redirect, the mark [DONE], whether an error came
// from the line or from the bytes.
type tap struct {
	io.ReadCloser
	status int
	media  string
	start  []byte
	done   bool   // the line "data: [DONE]" was seen
	err    error  // of the line
	heard  func() // told of every piece; nil: nobody is

	line  []byte // the start of the current line
	event int    // bytes of the current event
}

func (t *tap) middleware(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err != nil {
		return nil, err
	}
	t.status = response.StatusCode
	t.media, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	if t.status < 300 {
		t.ReadCloser = response.Body
		response.Body = t
	}
	return response, nil
}

// Read reads on and notes what passes by.
func (t *tap) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.ReadCloser.Read(p)
	if n > 0 && t.heard != nil {
		t.heard()
	}
	if room := startBytes - len(t.start); room > 0 {
		t.start = append(t.start, p[:min(n, room)]...)
	}
	t.scan(p[:n])
	if t.event > maxEvent {
		err = errEventTooLong
	}
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
}

const doneLine = "data: [DONE]"

// scan follows the lines: an empty one ends an event.
func (t *tap) scan(p []byte) {
	for len(p) > 0 {
		at := bytes.IndexByte(p, '\n')
		part := p
		if at >= 0 {
			part = p[:at]
		}
		t.event += len(part)
		if room := len(doneLine) - len(t.line); room > 0 {
			t.line = append(t.line, part[:min(len(part), room)]...)
		}
		if at < 0 {
			return
		}
		if bytes.HasPrefix(t.line, []byte(doneLine)) || bytes.HasPrefix(t.line, []byte("data:[DONE]")) {
			t.done = true
		}
		if len(bytes.TrimRight(t.line, "\r")) == 0 {
			t.event = 0
		}
		t.line, p = t.line[:0], p[at+1:]
	}
}

// page and json say what kind of thing a response is that holds no event.
func (t *tap) page() bool {
	start := bytes.ToLower(bytes.TrimSpace(t.start[:min(len(t.start), 512)]))
	return t.media == "text/html" || bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

func (t *tap) json() bool {
	start := bytes.TrimSpace(t.start)
	return t.media == "application/json" || len(start) > 0 && (start[0] == '{' || start[0] == '[')
}
