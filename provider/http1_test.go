package provider_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/providertest"
)

// listen serves raw connections until the test ends and returns the address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			open.Go(func() {
				defer func() { _ = c.Close() }()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		open.Wait()
	})
	return l.Addr().String()
}

// raw is a server that reads whole requests and answers them by hand.
func raw(t *testing.T, answer func(c net.Conn, n int64)) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	address := listen(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			answer(c, requests.Add(1))
		}
	})
	return "http://" + address, requests
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

func TestHowACallEndsOverHTTP1(t *testing.T) {
	t.Parallel()
	write := func(c net.Conn, text string) { _, _ = io.WriteString(c, text) }
	tests := map[string]struct {
		answer func(net.Conn, int64)
		stop   error // ends the call once the server has answered so far
		want   onereply.Class
		code   string
		status int
		broken bool // BodyErr was observed
	}{
		"closed before the first byte": {
			answer: func(c net.Conn, _ int64) { _ = c.Close() },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"reset before the first byte": {
			answer: func(c net.Conn, _ int64) { reset(c) },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"half a status line": {
			answer: func(c net.Conn, _ int64) { write(c, "HTTP/1.1 20"); _ = c.Close() },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"cut in a body with a length": {
			answer: func(c net.Conn, _ int64) { write(c, head+"Content-Length: 100\r\n\r\ndata: half"); _ = c.Close() },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable, status: 200, broken: true,
		},
		"cut in a chunked body": {
			answer: func(c net.Conn, _ int64) {
				write(c, head+"Transfer-Encoding: chunked\r\n\r\nb\r\ndata: half\n\r\n")
				_ = c.Close()
			},
			want: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable, status: 200, broken: true,
		},
		"reset in the body": {
			answer: func(c net.Conn, _ int64) { write(c, head+"Content-Length: 100\r\n\r\ndata: half"); reset(c) },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable, broken: true,
		},
		"no answer within the call's time": {
			answer: func(net.Conn, int64) {}, stop: onereply.ErrCallTimeout,
			want: onereply.ClassUnknown, code: onereply.CodeTimeout,
		},
		"an answer that is not HTTP": {
			answer: func(c net.Conn, _ int64) { write(c, "what do you want?\r\n"); _ = c.Close() },
			want:   onereply.ClassUnknown, code: onereply.CodeProviderUnavailable,
		},
		"a web page that says so and breaks off": {
			answer: func(c net.Conn, _ int64) {
				write(c, "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\nContent-Length: 100\r\n\r\n<p>")
				_ = c.Close()
			},
			want: onereply.ClassUseless, code: onereply.CodeBadProviderResponse, status: 200, broken: true,
		},
		"a web page under a false name that breaks off": {
			answer: func(c net.Conn, _ int64) {
				write(c, head+"Content-Length: 100\r\n\r\n\n <!DOCTYPE html><html>")
				_ = c.Close()
			},
			want: onereply.ClassUseless, code: onereply.CodeBadProviderResponse, status: 200, broken: true,
		},
		"an error whose body breaks off": {
			answer: func(c net.Conn, _ int64) {
				write(c, "HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\n{\"error\"")
				_ = c.Close()
			},
			want: onereply.ClassRefusedTemporary, code: onereply.CodeRateLimited, status: 429, broken: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			url, requests := raw(t, func(c net.Conn, n int64) {
				test.answer(c, n)
				if test.stop != nil {
					cancel(test.stop)
				}
			})
			call := &providertest.Call{}
			response, _, err := post(ctx, provider.ClientWith(call, transport(t)), url)
			if err == nil {
				t.Fatal("the call did not fail")
			}
			e := classify(call, response, err, context.Cause(ctx))
			if e.Class != test.want || e.Code != test.code {
				t.Errorf("got %s (%s), want %s (%s): %v", e.Class, e.Code, test.want, test.code, err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("the server saw %d requests, want 1", n)
			}
			o := call.Seen()
			if !o.Connected || o.Requests != 1 {
				t.Errorf("observed %+v", o)
			}
			if test.status != 0 && o.Status != test.status {
				t.Errorf("observed status %d, want %d", o.Status, test.status)
			}
			// A reset may overtake the bytes before it, so that no response comes.
			if o.Status != 0 && (o.BodyErr != nil) != test.broken {
				t.Errorf("observed a broken body: %v", o.BodyErr)
			}
		})
	}
}

func TestACancelledCallIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{onereply.ErrCancelled, onereply.ErrLeaseLost, onereply.ErrDraining} {
		arrived := make(chan struct{})
		url, _ := raw(t, func(net.Conn, int64) { close(arrived) })
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-arrived
			cancel(cause)
		}()
		call := &providertest.Call{}
		_, _, err := post(ctx, provider.ClientWith(call, transport(t)), url)
		if e := classify(call, nil, err, context.Cause(ctx)); e == nil || e.Class != onereply.ClassInterrupted {
			t.Errorf("%v: got %v", cause, e)
		}
	}
}

// A server that drops idle connections: the second call goes out on one that is
// already dead, and nothing but the first request's worth may arrive twice.
func TestADeadReusedConnectionIsNotSentAgain(t *testing.T) {
	t.Parallel()
	url, requests := raw(t, func(c net.Conn, n int64) {
		if n == 1 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			return
		}
		_ = c.Close()
	})
	shared := transport(t)
	if _, body, err := post(t.Context(), provider.ClientWith(&providertest.Call{}, shared), url); err != nil || body != "ok" {
		t.Fatalf("first call: %q, %v", body, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("again"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "this alone makes net/http send a POST twice")
	call := &providertest.Call{}
	_, err = provider.ClientWith(call, shared).Do(request)
	if err == nil {
		t.Fatal("the call on a dead connection did not fail")
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the server saw %d requests for two calls", n)
	}
	if e := classify(call, nil, err, nil); e.Class != onereply.ClassUnknown {
		t.Errorf("class %s, want unknown", e.Class)
	}
	// The same without our client is sent twice: the test would notice.
	if _, _, err := post(t.Context(), provider.ClientWith(&providertest.Call{}, shared), url); err == nil {
		t.Fatal("a fresh connection was answered")
	}
	plainURL, plain := raw(t, func(c net.Conn, n int64) {
		if n == 1 || n == 3 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			return
		}
		_ = c.Close()
	})
	client := &http.Client{Transport: transport(t)}
	for range 2 {
		request, err := http.NewRequestWithContext(t.Context(), "POST", plainURL, strings.NewReader("again"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", "k")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	if n := plain.Load(); n != 3 {
		t.Errorf("net/http sent %d requests for two; the trap this guards against has moved", n)
	}
}

func TestErrorBodiesAreReadAheadAndGivenBack(t *testing.T) {
	t.Parallel()
	padding := strings.Repeat(" ", 100<<10)
	tests := map[string]struct {
		status  int
		headers string
		body    string
		class   onereply.Class
		code    string
		after   time.Duration
	}{
		"OpenAI quota used up":        {429, "", `{"error":{"message":"m","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, onereply.ClassRefusedPermanent, onereply.CodeInsufficientQuota, 0},
		"OpenAI quota by type only":   {429, "", `{"error":{"message":"m","type":"insufficient_quota","code":"something_new"}}`, onereply.ClassRefusedPermanent, onereply.CodeInsufficientQuota, 0},
		"OpenAI rate limit":           {429, "Retry-After: 2\r\n", `{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}`, onereply.ClassRefusedTemporary, onereply.CodeRateLimited, 2 * time.Second},
		"a wait in milliseconds":      {429, "Retry-After-Ms: 1500\r\n", `{}`, onereply.ClassRefusedTemporary, onereply.CodeRateLimited, 1500 * time.Millisecond},
		"OpenAI context":              {400, "", `{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}`, onereply.ClassRefusedPermanent, onereply.CodeContextTooLong, 0},
		"OpenAI filter":               {400, "", `{"error":{"message":"m","code":"content_policy_violation"}}`, onereply.ClassRefusedPermanent, onereply.CodeContentFiltered, 0},
		"Anthropic spend limit":       {429, "", `{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}`, onereply.ClassRefusedPermanent, onereply.CodeInsufficientQuota, 0},
		"Anthropic overload":          {529, "Retry-After: 3\r\n", `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, onereply.ClassUnknown, onereply.CodeProviderOverloaded, 3 * time.Second},
		"llama.cpp context":           {400, "", `{"error":{"code":400,"message":"m","type":"exceed_context_size_error"}}`, onereply.ClassRefusedPermanent, onereply.CodeContextTooLong, 0},
		"a page in place of an error": {502, "", `<html>bad gateway</html>`, onereply.ClassUnknown, onereply.CodeProviderUnavailable, 0},
		"an empty body":               {500, "", ``, onereply.ClassUnknown, onereply.CodeProviderUnavailable, 0},
		"a body beyond what is read ahead": {400, "", `{"error":{"code":"c","message":"` + padding + `"}}`,
			onereply.ClassRefusedPermanent, onereply.CodeProviderRejected, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := raw(t, func(c net.Conn, _ int64) {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 %d X\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", test.status, test.headers, len(test.body), test.body)
			})
			call := &providertest.Call{}
			response, body, err := post(t.Context(), provider.ClientWith(call, transport(t)), url)
			if err != nil || body != test.body {
				t.Fatalf("the SDK could not read the body as it came: %d bytes of %d, %v", len(body), len(test.body), err)
			}
			e := classify(call, response, nil, nil)
			if e.Class != test.class || e.Code != test.code || e.RetryAfter != test.after {
				t.Errorf("got %s (%s) after %s, want %s (%s) after %s", e.Class, e.Code, e.RetryAfter, test.class, test.code, test.after)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("the server saw %d requests", n)
			}
		})
	}
}

func TestSilenceInTheBodyBeyondTheCallsTime(t *testing.T) {
	t.Parallel()
	url, requests := raw(t, func(c net.Conn, _ int64) { _, _ = io.WriteString(c, head+"Content-Length: 100\r\n\r\nhalf") })
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	call := &providertest.Call{}
	response, err := provider.ClientWith(call, transport(t)).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	cancel(onereply.ErrCallTimeout)
	_, err = response.Body.Read(make([]byte, 4))
	_ = response.Body.Close()
	if e := classify(call, response, err, context.Cause(ctx)); e == nil || e.Class != onereply.ClassUnknown || e.Code != onereply.CodeTimeout {
		t.Errorf("got %v", e)
	}
	if o := call.Seen(); requests.Load() != 1 || o.Requests != 1 || o.Status != 200 || o.BodyErr == nil {
		t.Errorf("%d requests, observed %+v", requests.Load(), o)
	}
}

func TestClosingEarlyIsNoBrokenBody(t *testing.T) {
	t.Parallel()
	url, _ := raw(t, func(c net.Conn, _ int64) { _, _ = io.WriteString(c, head+"Content-Length: 100\r\n\r\nhalf") })
	call := &providertest.Call{}
	request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := provider.ClientWith(call, transport(t)).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := response.Body.Read(make([]byte, 10)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read after close: %v", err)
	}
	if o := call.Seen(); o.BodyErr != nil || o.Requests != 1 {
		t.Errorf("observed %+v", o)
	}
}
