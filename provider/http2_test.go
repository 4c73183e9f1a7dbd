package provider_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/providertest"
)

// peer is one HTTP/2 connection of a server that answers frame by frame.
type peer struct {
	conn net.Conn
	*http2.Framer
}

func (p peer) headers(stream uint32, end bool, pairs ...string) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
}

func (p peer) ok(stream uint32) {
	p.headers(stream, false, ":status", "200", "content-type", "text/event-stream")
	_ = p.WriteData(stream, true, []byte("ok"))
}

// frames is a TLS server that calls answer for every request it has read whole.
func frames(t *testing.T, answer func(p peer, stream uint32, n int64)) (url string, requests *atomic.Int64) {
	t.Helper()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	config := &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}}
	certified.Close()
	requests = &atomic.Int64{}
	address := listen(t, func(c net.Conn) {
		conn := tls.Server(c, config)
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil {
			return
		}
		p := peer{conn: conn, Framer: http2.NewFramer(conn, conn)}
		if p.WriteSettings() != nil {
			return
		}
		for {
			f, err := p.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = p.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				if f.StreamEnded() {
					answer(p, f.StreamID, requests.Add(1))
				}
			case *http2.DataFrame:
				if f.StreamEnded() {
					answer(p, f.StreamID, requests.Add(1))
				}
			}
		}
	})
	return "https://" + address, requests
}

func http2Transport(t *testing.T) *http.Transport {
	t.Helper()
	tr := transport(t)
	tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a test server on loopback
	return tr
}

func TestHowACallEndsOverHTTP2(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer func(p peer, stream uint32, n int64)
		stop   error // ends the call once the server has the request
		want   onereply.Class
		code   string
		status int
	}{
		"REFUSED_STREAM": {
			answer: func(p peer, s uint32, _ int64) { _ = p.WriteRSTStream(s, http2.ErrCodeRefusedStream) },
			want:   onereply.ClassRefusedTemporary, code: onereply.CodeProviderUnavailable,
		},
		"PROTOCOL_ERROR, which net/http would send again for ever": {
			answer: func(p peer, s uint32, _ int64) { _ = p.WriteRSTStream(s, http2.ErrCodeProtocol) },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"INTERNAL_ERROR": {
			answer: func(p peer, s uint32, _ int64) { _ = p.WriteRSTStream(s, http2.ErrCodeInternal) },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"ENHANCE_YOUR_CALM": {
			answer: func(p peer, s uint32, _ int64) { _ = p.WriteRSTStream(s, http2.ErrCodeEnhanceYourCalm) },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"a graceful GOAWAY below the stream": {
			answer: func(p peer, _ uint32, _ int64) { _ = p.WriteGoAway(0, http2.ErrCodeNo, nil) },
			want:   onereply.ClassRefusedTemporary, code: onereply.CodeProviderUnavailable,
		},
		"a GOAWAY with an error below the stream": {
			answer: func(p peer, _ uint32, _ int64) { _ = p.WriteGoAway(0, http2.ErrCodeInternal, nil) },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"a GOAWAY that covers the stream, then the end": {
			answer: func(p peer, s uint32, _ int64) { _ = p.WriteGoAway(s, http2.ErrCodeNo, nil); _ = p.conn.Close() },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"the connection ends before the headers": {
			answer: func(p peer, _ uint32, _ int64) { _ = p.conn.Close() },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"REFUSED_STREAM after output": {
			answer: func(p peer, s uint32, _ int64) {
				p.headers(s, false, ":status", "200")
				_ = p.WriteData(s, false, []byte("half"))
				_ = p.WriteRSTStream(s, http2.ErrCodeRefusedStream)
			},
			want: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable, status: 200,
		},
		"the connection ends in the body": {
			answer: func(p peer, s uint32, _ int64) {
				p.headers(s, false, ":status", "200")
				_ = p.WriteData(s, false, []byte("half"))
				_ = p.conn.Close()
			},
			want: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable, status: 200,
		},
		"no answer within the call's time": {
			answer: func(peer, uint32, int64) {}, stop: onereply.ErrCallTimeout,
			want: onereply.ClassUnknown, code: onereply.CodeTimeout,
		},
		"a redirect": {
			answer: func(p peer, s uint32, _ int64) { p.headers(s, true, ":status", "307", "location", "/elsewhere") },
			want:   onereply.ClassRefusedPermanent, code: onereply.CodeProviderRejected, status: 307,
		},
		"a rate limit": {
			answer: func(p peer, s uint32, _ int64) { p.headers(s, true, ":status", "429", "retry-after", "5") },
			want:   onereply.ClassRefusedTemporary, code: onereply.CodeRateLimited, status: 429,
		},
	}
	for name, test := range tests {
		for body, content := range map[string]string{"with a body": "question", "without a body": ""} {
			t.Run(name+", "+body, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				url, requests := frames(t, func(p peer, stream uint32, n int64) {
					test.answer(p, stream, n)
					if test.stop != nil {
						cancel(test.stop)
					}
				})
				call := &providertest.Call{}
				response, err := send(ctx, provider.ClientWith(call, http2Transport(t)), url, content)
				e := classify(call, response, err, context.Cause(ctx))
				if e == nil || e.Class != test.want || e.Code != test.code {
					t.Errorf("got %v, want %s (%s)", e, test.want, test.code)
				}
				if n := requests.Load(); n != 1 {
					t.Errorf("the server saw %d requests, want 1", n)
				}
				if o := call.Seen(); !o.Connected || o.Requests != 1 || o.Status != test.status {
					t.Errorf("observed %+v", o)
				}
			})
		}
	}
}

// send posts content, or nothing at all, and reads the body.
func send(ctx context.Context, client *http.Client, url, content string) (*http.Response, error) {
	if content != "" {
		response, _, err := post(ctx, client, url)
		return response, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response, err
}

func TestAReusedHTTP2ConnectionThatDiesIsNotSentAgain(t *testing.T) {
	t.Parallel()
	url, requests := frames(t, func(p peer, s uint32, n int64) {
		if n == 1 {
			p.ok(s)
			return
		}
		_ = p.conn.Close()
	})
	shared := http2Transport(t)
	if _, body, err := post(t.Context(), provider.ClientWith(&providertest.Call{}, shared), url); err != nil || body != "ok" {
		t.Fatalf("first call: %q, %v", body, err)
	}
	call := &providertest.Call{}
	_, _, err := post(t.Context(), provider.ClientWith(call, shared), url)
	if e := classify(call, nil, err, nil); e == nil || e.Class != onereply.ClassUnknown {
		t.Errorf("got %v", e)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the server saw %d requests for two calls", n)
	}
}

// The guard has a reason: without it net/http sends the same POST again.
func TestNetHTTPRepeatsARefusedPostByItself(t *testing.T) {
	t.Parallel()
	url, requests := frames(t, func(p peer, s uint32, n int64) {
		if n == 1 {
			_ = p.WriteRSTStream(s, http2.ErrCodeRefusedStream)
			return
		}
		p.ok(s)
	})
	client := &http.Client{Transport: http2Transport(t)}
	response, err := client.Post(url, "text/plain", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if n := requests.Load(); n != 2 {
		t.Errorf("net/http sent %d requests; the trap this guards against has moved", n)
	}
}

func TestTheOneRequestArrivesWholeOverHTTP2(t *testing.T) {
	t.Parallel()
	var protocol, body string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		protocol, body = r.Proto, string(raw)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	call := &providertest.Call{}
	if _, _, err := post(t.Context(), provider.ClientWith(call, http2Transport(t)), server.URL); err != nil {
		t.Fatal(err)
	}
	if protocol != "HTTP/2.0" || body != `{"question":"?"}` {
		t.Errorf("got %s %q", protocol, body)
	}
	if o := call.Seen(); !o.Asked || !o.Connected || o.Requests != 1 || o.Status != 200 {
		t.Errorf("observed %+v", o)
	}
}
