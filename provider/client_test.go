package provider_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/providertest"
)

// post sends one POST as an SDK would, reads the body, and says how it ended.
func post(ctx context.Context, client *http.Client, url string) (*http.Response, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"question":"?"}`))
	if err != nil {
		return nil, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(response.Body)
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	return response, string(body), err
}

func transport(t *testing.T) *http.Transport {
	t.Helper()
	tr := provider.NewTransport()
	tr.Proxy = nil
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

var errStatus = errors.New("status")

// classify judges a call as an engine would; an error status is an error of the SDK.
func classify(call *providertest.Call, r *http.Response, err error, cause error) *onereply.CallError {
	if err == nil && r != nil && r.StatusCode >= 300 {
		err = errStatus
	}
	return onereply.Classify(err, call.Seen(), cause, time.Now())
}

func TestASecondSendNeverLeaves(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "BREW"} {
		requests.Store(0)
		call := &providertest.Call{}
		client := provider.ClientWith(call, transport(t))
		for i := range 3 {
			request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if i == 0 {
				if err != nil {
					t.Fatalf("%s: first send: %v", method, err)
				}
				_ = response.Body.Close()
			} else if !errors.Is(err, onereply.ErrUncounted) {
				t.Errorf("%s: send %d: got %v, want ErrUncounted", method, i+1, err)
			}
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%s: the server saw %d requests, want 1", method, n)
		}
		if o := call.Seen(); o.Requests != 1 || !o.Connected || o.Status != 200 {
			t.Errorf("%s: observed %+v", method, o)
		}
	}
}

func TestALookupIsNoCall(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	call := &providertest.Call{}
	client := provider.ClientWith(call, transport(t))
	for _, method := range []string{"GET", "HEAD", "OPTIONS", ""} {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Method = method
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("%q: %v", method, err)
		}
		_ = response.Body.Close()
	}
	if sends, _ := call.Sends(); sends != 0 {
		t.Errorf("lookups took %d sends", sends)
	}
	if o := call.Seen(); o != (onereply.Observation{}) {
		t.Errorf("a lookup's 404 was observed as the call's: %+v", o)
	}
	if _, _, err := post(t.Context(), client, server.URL); err != nil {
		t.Errorf("the send was gone after lookups: %v", err)
	}
}

func TestTheBodyAndTheHeadersOfTheOneRequest(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r, string(raw)
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader("whole body"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "k")
	request.Header.Set("X-Idempotency-Key", "k")
	request.Header.Set("Authorization", "Bearer secret")
	response, err := provider.ClientWith(&providertest.Call{}, transport(t)).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if got.Header.Get(name) != "" {
			t.Errorf("%s reached a provider that does not document it", name)
		}
		if request.Header.Get(name) == "" {
			t.Errorf("the caller's own request lost %s", name)
		}
	}
	if body != "whole body" || got.ContentLength != 10 || got.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("the request was changed: %q, length %d, %v", body, got.ContentLength, got.Header)
	}
}

func TestConnectionsAreReusedBetweenCalls(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { addresses[r.RemoteAddr] = true }))
	defer server.Close()
	shared := transport(t)
	for range 5 {
		if _, _, err := post(t.Context(), provider.ClientWith(&providertest.Call{}, shared), server.URL); err != nil {
			t.Fatal(err)
		}
	}
	if len(addresses) != 1 {
		t.Errorf("5 calls in a row used %d connections, want 1", len(addresses))
	}
}

func TestRedirectsAreReturned(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			http.Redirect(w, r, "/elsewhere", status)
		}))
		call := &providertest.Call{}
		response, _, err := post(t.Context(), provider.ClientWith(call, transport(t)), server.URL)
		server.Close()
		if err != nil || response.StatusCode != status {
			t.Fatalf("%d: got %v, %v", status, response, err)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%d: the server saw %d requests, want 1", status, n)
		}
		if e := classify(call, response, nil, nil); e.Class != onereply.ClassRefusedPermanent {
			t.Errorf("%d: class %s", status, e.Class)
		}
	}
}

func TestNothingWasSentWithoutAConnection(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	strangers := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request arrived over a connection whose handshake must fail")
	}))
	strangers.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer strangers.Close()
	silent := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })

	tests := map[string]struct {
		url   string
		setup func(*http.Transport)
		limit time.Duration
	}{
		"the dial is refused": {url: refusing},
		"the name does not resolve": {url: "http://provider.test", setup: func(tr *http.Transport) {
			tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "provider.test", IsNotFound: true}}
			}
		}},
		"the certificate is not trusted":     {url: strangers.URL},
		"the other side does not speak TLS":  {url: "https://" + listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n") })},
		"the call ends during the handshake": {url: "https://" + silent, limit: 50 * time.Millisecond},
		"the call ends while it is being dialled": {url: "http://provider.test", limit: 50 * time.Millisecond, setup: func(tr *http.Transport) {
			tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := transport(t)
			if test.setup != nil {
				test.setup(tr)
			}
			ctx := t.Context()
			if test.limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, test.limit, onereply.ErrCallTimeout)
				defer cancel()
			}
			call := &providertest.Call{}
			_, _, err := post(ctx, provider.ClientWith(call, tr), test.url)
			if err == nil {
				t.Fatal("the call did not fail")
			}
			o := call.Seen()
			if !o.Asked || o.Connected || o.Requests != 0 {
				t.Errorf("observed %+v", o)
			}
			if e := classify(call, nil, err, context.Cause(ctx)); e.Class != onereply.ClassNotSent {
				t.Errorf("class %s, want not_sent: %v", e.Class, err)
			}
		})
	}
}

func TestAForeignTransportProvesNothing(t *testing.T) {
	t.Parallel()
	call := &providertest.Call{}
	base := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("boom") })
	_, _, err := post(t.Context(), provider.ClientWith(call, base), "http://provider.test")
	if e := classify(call, nil, err, nil); e.Class != onereply.ClassUnknown {
		t.Errorf("class %s, want unknown", e.Class)
	}
}

func TestClientUsesTheDefaultTransport(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	call := &providertest.Call{}
	client := provider.Client(call)
	if _, _, err := post(t.Context(), client, server.URL); err != nil {
		t.Fatal(err)
	}
	if _, _, err := post(t.Context(), client, server.URL); !errors.Is(err, onereply.ErrUncounted) {
		t.Errorf("second send: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
