package provider

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/onereply/onereply"
)

// Client returns an http.Client for one call that keeps its count honest under
// any SDK. It sends through http.DefaultTransport, so calls share connections;
// a program with many workers makes its own [NewTransport] once and uses
// [ClientWith].
func Client(call onereply.Call) *http.Client { return ClientWith(call, http.DefaultTransport) }

// ClientWith is [Client] on a transport of the caller's, which it shares
// between calls so that their connections are reused.
//
// What the client promises about a request that can start work, which is every
// method but GET, HEAD and OPTIONS:
//
//   - It takes the call's one permission to send. A second one never leaves this
//     process; its error matches [onereply.ErrUncounted], also when an SDK or a
//     redirect asked for it.
//   - It leaves at most once. Go's HTTP/2 client repeats a POST by itself when it
//     can rewind the body, and HTTP/1.1 one that carries an idempotency header;
//     both are made impossible.
//   - Redirects are handed back, not followed.
//   - Idempotency-Key and X-Idempotency-Key are taken off: no text generation
//     endpoint documents them, and to one that does not they are a promise that
//     nobody keeps. An adapter of an endpoint that documents one needs a client
//     of its own.
//   - What was seen on the wire is reported to the call's Observe: whether a
//     connection was obtained, what was sent, status, Retry-After, the provider's
//     error code (from the first 64 KiB of the body, which the SDK can still
//     read), a web page in place of an answer, a body that broke off.
//
// A lookup passes through unreported: it is no call, and its 404 says nothing
// about one.
//
// A base that is not net/http's calls no hooks, so nothing is known about its
// connections and no failure of it counts as not sent.
func ClientWith(call onereply.Call, base http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: &sender{call: call, base: base},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// NewTransport returns a transport with the limits that long, streamed calls
// need: it keeps enough idle connections for many workers, gives them up before
// most servers do (a connection that dies while a request is on its way is an
// unknown outcome), notices a dead HTTP/2 peer in the middle of a stream, and
// leaves compression, which delays the pieces of a stream, off. How long a call
// may take is the call's business. Make one for the life of the program; call
// its CloseIdleConnections at the end.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// sender is the innermost round tripper of one call.
type sender struct {
	call onereply.Call
	base http.RoundTripper
}

func startsWork(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return true
}

func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if !startsWork(r.Method) {
		return s.base.RoundTrip(r)
	}
	if err := s.call.Send(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // the contract of a RoundTripper; nothing was read from it
		}
		return nil, fmt.Errorf("%s to %s: %w", r.Method, r.URL.Host, err)
	}
	w := &wire{call: s.call}
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(r.Context(), w.trace()))
	response, err := s.base.RoundTrip(once(ctx, r))
	if err != nil {
		cancel()
		o := w.seen()
		o.Unprocessed = unprocessed(err)
		s.call.Observe(o)
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The body is a connection now, which the context must outlive.
		context.AfterFunc(r.Context(), cancel)
		s.call.Observe(w.response(response))
		return response, nil
	}
	s.call.Observe(w.response(response))
	if response.StatusCode >= 400 {
		s.call.Observe(peek(response, cancel))
	}
	response.Body = newBody(response, w, cancel)
	return response, nil
}

// once returns a copy of the request that net/http cannot send again: no way to
// rewind the body, no header that calls it idempotent, and a body even where
// there was none, since an empty one is repeated without asking.
func once(ctx context.Context, r *http.Request) *http.Request {
	out := r.Clone(ctx)
	out.GetBody = nil
	out.Header.Del("Idempotency-Key")
	out.Header.Del("X-Idempotency-Key")
	if out.Body == nil || out.Body == http.NoBody {
		out.Body, out.ContentLength = io.NopCloser(strings.NewReader("")), 0
	}
	return out
}

// unprocessed recognises the two ways in which an HTTP/2 peer says that it did
// not act on a request. net/http hands them over as text when it may not send
// the request again.
func unprocessed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "stream error: stream ID ") && strings.Contains(text, "; REFUSED_STREAM; received from peer") ||
		strings.Contains(text, "http2: Transport received Server's graceful shutdown GOAWAY")
}
