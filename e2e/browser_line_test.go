//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// line is what lies between the browser and the service: an HTTP proxy that
// records every request and, as told, loses answers, answers in the service's
// place, or is down altogether.
type line struct {
	t       *testing.T
	proxy   *httputil.ReverseProxy
	server  *httptest.Server
	gateway *gateway

	mu       sync.Mutex
	requests []passed
	rule     func(passed) fate
}

// passed is one request that came along.
type passed struct {
	Method, Path, Key, Body, LastEventID string
	Query                                string
}

// fate is what becomes of a request.
type fate int

const (
	deliver   fate = iota
	loseBack       // it arrives, and its answer does not come back
	loseThere      // it does not arrive
	later          // it arrives, and the answer is replaced by a 429 that asks for three hours
)

func startLine(t *testing.T, upstream string) *line {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t}
	l.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1, // streams pass as they come
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // no answer is no answer
		},
	}
	l.server = httptest.NewUnstartedServer(http.HandlerFunc(l.serve))
	l.server.Config.ErrorLog = nil
	l.gateway = &gateway{Listener: l.server.Listener, open: map[net.Conn]bool{}}
	l.server.Listener = l.gateway
	l.server.Start()
	t.Cleanup(func() {
		l.gateway.cut()
		l.server.Close()
	})
	return l
}

func (l *line) url() string { return l.server.URL }

// decide sets what becomes of requests from now on; nil delivers all.
func (l *line) decide(rule func(passed) fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rule = rule
}

// posts returns the POSTs that came along whose path ends so, in their order.
func (l *line) posts(suffix string) []passed {
	return l.matching(func(p passed) bool { return p.Method == "POST" && strings.HasSuffix(p.Path, suffix) })
}

// streams returns the requests for event streams.
func (l *line) streams() []passed {
	return l.matching(func(p passed) bool { return strings.HasSuffix(p.Path, "/events") })
}

func (l *line) matching(f func(passed) bool) []passed {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []passed
	for _, p := range l.requests {
		if f(p) {
			found = append(found, p)
		}
	}
	return found
}

// keys returns the distinct keys of requests, in the order of their first use.
func keys(of []passed) []string {
	var found []string
	seen := map[string]bool{}
	for _, p := range of {
		if !seen[p.Key] {
			seen[p.Key] = true
			found = append(found, p.Key)
		}
	}
	return found
}

func (l *line) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the browser has left
	}
	p := passed{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Key: r.Header.Get("Idempotency-Key"), Body: string(body), LastEventID: r.Header.Get("Last-Event-ID")}
	l.mu.Lock()
	l.requests = append(l.requests, p)
	rule := l.rule
	l.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	what := deliver
	if rule != nil {
		what = rule(p)
	}
	switch what {
	case deliver:
		l.proxy.ServeHTTP(w, r)
	case loseThere:
		panic(http.ErrAbortHandler)
	case loseBack:
		l.proxy.ServeHTTP(httptest.NewRecorder(), r)
		// Cut after its first bytes: an answer of which nothing came would be
		// asked for again by the browser itself, and the page not be tried.
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "4096")
		w.WriteHeader(http.StatusAccepted)
		if err := http.NewResponseController(w).Flush(); err != nil {
			l.t.Logf("the browser left before its answer was lost: %v", err)
		}
		panic(http.ErrAbortHandler)
	case later:
		l.proxy.ServeHTTP(httptest.NewRecorder(), r)
		w.Header().Set("Retry-After", "10800")
		http.Error(w, "later", http.StatusTooManyRequests)
	}
}

// gateway is a listener that can be shut: then what is connected is cut off and
// nobody gets in.
type gateway struct {
	net.Listener

	mu   sync.Mutex
	down bool
	open map[net.Conn]bool
}

func (g *gateway) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		down := g.down
		if !down {
			g.open[c] = true
		}
		g.mu.Unlock()
		if !down {
			return c, nil
		}
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return nil, err
		}
	}
}

// shut takes the line down, or up again.
func (g *gateway) shut(down bool) {
	g.mu.Lock()
	g.down = down
	g.mu.Unlock()
	if down {
		g.cut()
	}
}

// cut ends every connection once. Its errors say that the other side was quicker.
func (g *gateway) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		_ = c.Close()
	}
	clear(g.open)
}
