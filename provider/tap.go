package provider

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
)

const (
	// startBytes is how much of a response is kept to judge one that is no stream.
	startBytes = 64 << 10
	// maxEvent bounds one event, which the SDK holds in memory whole.
	maxEvent = 8 << 20
)

var errEventTooLong = errors.New("one event of the stream is longer than 8 MiB")

// Tap watches the bytes of a streamed response on their way to an SDK, for what
// SDKs do not tell: the status of a redirect, the mark [DONE], whether an error
// came from the line or from the bytes. Its zero value is ready for one response.
type Tap struct {
	io.ReadCloser

	// Heard, when not nil, is told of every piece.
	Heard func()

	status int
	media  string
	start  []byte
	done   bool  // the line "data: [DONE]" was seen
	err    error // of the line

	line  []byte // the start of the current line
	event int    // bytes of the current event
}

// Status is that of the response; 0: none has come.
func (t *Tap) Status() int { return t.status }

// Done reports whether the line "data: [DONE]" was seen.
func (t *Tap) Done() bool { return t.done }

// Middleware is an SDK's middleware that puts the tap in place.
func (t *Tap) Middleware(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
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
func (t *Tap) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.ReadCloser.Read(p)
	if n > 0 && t.Heard != nil {
		t.Heard()
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
func (t *Tap) scan(p []byte) {
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
func (t *Tap) page() bool {
	start := bytes.ToLower(bytes.TrimSpace(t.start[:min(len(t.start), 512)]))
	return t.media == "text/html" || bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

func (t *Tap) json() bool {
	start := bytes.TrimSpace(t.start)
	return t.media == "application/json" || len(start) > 0 && (start[0] == '{' || start[0] == '[')
}
