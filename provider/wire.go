package provider

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onereply/onereply"
)

// wire gathers what one request met. The hooks run on net/http's goroutines.
type wire struct {
	call      onereply.Call
	asked     atomic.Bool
	connected atomic.Bool
	fresh     atomic.Bool // a connection was obtained and nothing written to it yet
	requests  atomic.Int64
}

func (w *wire) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { w.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			w.connected.Store(true)
			w.fresh.Store(true)
		},
		WroteHeaders: w.wrote,
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				w.wrote()
			}
		},
	}
}

// wrote counts one physical request for each connection that was written to.
func (w *wire) wrote() {
	if w.fresh.CompareAndSwap(true, false) {
		w.requests.Add(1)
	}
}

func (w *wire) seen() onereply.Observation {
	return onereply.Observation{
		Asked: w.asked.Load(), Connected: w.connected.Load(), Requests: int(w.requests.Load()),
	}
}

func (w *wire) response(r *http.Response) onereply.Observation {
	o := w.seen()
	o.Status = r.StatusCode
	o.RetryAfter = r.Header.Get("Retry-After")
	if ms, err := strconv.ParseFloat(r.Header.Get("Retry-After-Ms"), 64); err == nil && o.RetryAfter == "" {
		o.RetryAfter = strconv.FormatFloat(ms/1000, 'f', -1, 64)
	}
	o.HTML = isPage(r.Header.Get("Content-Type"))
	return o
}

func isPage(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "text/html" || media == "application/xhtml+xml")
}

const (
	// errorBodyBytes is how much of an error body is looked at.
	errorBodyBytes = 64 << 10
	// errorBodyWait is how long an error body may take to arrive. The status has
	// said what matters; a worker must not wait for the rest.
	errorBodyWait = 5 * time.Second
)

// peek reads the start of an error body for the provider's own code and puts it
// back, so that the SDK reads the body as it came.
func peek(r *http.Response, cancel context.CancelFunc) onereply.Observation {
	timer := time.AfterFunc(errorBodyWait, cancel)
	start, err := io.ReadAll(io.LimitReader(r.Body, errorBodyBytes))
	timer.Stop()
	r.Body = &peeked{ReadCloser: r.Body, start: start, err: err}
	o := onereply.Observation{}
	if e, ok := ParseError(start); ok {
		o.Code, o.Type, o.Message = e.Code, e.Type, e.Message
	}
	return o
}

// peeked gives back what was read ahead, then the error that ended it, if any,
// then the rest.
type peeked struct {
	io.ReadCloser
	start []byte
	err   error
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.start) > 0 {
		n := copy(b, p.start)
		p.start = p.start[n:]
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.ReadCloser.Read(b)
}

// body reports how reading a response ended, and frees the request's context
// when it is closed.
type body struct {
	io.ReadCloser
	wire   *wire
	cancel context.CancelFunc
	sniff  bool // nothing was read yet, and it may be a page under a false name
	end    sync.Once
	closed atomic.Bool
}

func newBody(r *http.Response, w *wire, cancel context.CancelFunc) *body {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return &body{ReadCloser: r.Body, wire: w, cancel: cancel, sniff: r.StatusCode < 300 && media != "application/json"}
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.sniff {
		b.sniff = false
		if looksLikePage(p[:n]) {
			b.wire.call.Observe(onereply.Observation{HTML: true})
		}
	}
	if err != nil {
		b.end.Do(func() {
			o := b.wire.seen()
			// A read after the reader itself closed the body broke nothing off.
			if !errors.Is(err, io.EOF) && !b.closed.Load() {
				o.BodyErr = err
			}
			b.wire.call.Observe(o)
		})
	}
	return n, err
}

func (b *body) Close() error {
	b.closed.Store(true)
	err := b.ReadCloser.Close()
	b.cancel()
	b.end.Do(func() { b.wire.call.Observe(b.wire.seen()) })
	return err
}

func looksLikePage(start []byte) bool {
	text := strings.ToLower(strings.TrimLeft(string(start[:min(len(start), 256)]), "\ufeff \t\r\n"))
	return strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}
