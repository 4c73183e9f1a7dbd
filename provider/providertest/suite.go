package providertest

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// Provider is a scripted provider that understands the markers of
// provider/simulator, which is one.
type Provider interface {
	http.Handler
	// Close ends requests that hang.
	Close()
}

// Adapter is what the suite tries.
type Adapter struct {
	// New returns the model under test, for the provider at the base URL, which
	// ends in "/v1", over the transport.
	New func(baseURL string, transport http.RoundTripper) (provider.Model, error)
	// Provider returns a fresh scripted provider that speaks the adapter's wire.
	Provider func() Provider
	// Recovers says that the model is a provider.Recoverer whose calls survive
	// their line. It must give up on a response that is missing or does not begin
	// within some hundred milliseconds, or the suite takes long.
	Recovers bool
}

// Run puts the adapter through every row, over HTTP/1.1 and over HTTP/2.
func Run(t *testing.T, a Adapter) {
	t.Helper()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		for name, try := range a.all() {
			t.Run(protocol+", "+name, func(t *testing.T) {
				t.Parallel()
				for _, wrong := range try(t, protocol == "HTTP/2") {
					t.Error(wrong)
				}
			})
		}
	}
}

// all gives what to try by name: a row of the table each, and of recovery.
func (a Adapter) all() map[string]func(t *testing.T, http2 bool) []string {
	all := map[string]func(t *testing.T, http2 bool) []string{}
	for _, r := range rows() {
		if a.Recovers && r.recovered != "" {
			r.class, r.code, r.text = "", "", r.recovered
		}
		all[r.name] = func(t *testing.T, http2 bool) []string { return a.try(t, r, http2) }
	}
	if a.Recovers {
		for _, r := range recoveries() {
			all[r.name] = func(t *testing.T, http2 bool) []string { return a.recover(t, r, http2) }
		}
	}
	return all
}

// Check puts the adapter through the rows of the names over HTTP/1.1 and returns
// what is wrong, by name, without failing the test: for proving that the suite
// finds a fault.
func Check(t *testing.T, a Adapter, names ...string) map[string][]string {
	t.Helper()
	var mu sync.Mutex
	found := map[string][]string{}
	t.Run("rows", func(t *testing.T) {
		for name, try := range a.all() {
			if !slices.Contains(names, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if wrong := try(t, false); len(wrong) > 0 {
					mu.Lock()
					defer mu.Unlock()
					found[name] = wrong
				}
			})
		}
	})
	return found
}

// Rows returns the names of the suite's rows that every adapter has.
func Rows() []string {
	var names []string
	for _, r := range rows() {
		names = append(names, r.name)
	}
	return names
}

// Recoveries returns the names of the rows for adapters that recover calls.
func Recoveries() []string {
	var names []string
	for _, r := range recoveries() {
		names = append(names, r.name)
	}
	return names
}

// result is what came of one call.
type result struct {
	answer   provider.Answer
	deltas   string
	err      error
	outcome  *onereply.CallError
	requests int
	call     *Call
}

func (a Adapter) try(t *testing.T, r row, http2 bool) []string {
	t.Helper()
	scripted, model, end, err := a.open(t, r.place, http2)
	defer end()
	if err != nil {
		return []string{"New: " + err.Error()}
	}
	got := run(t.Context(), model, r, scripted.arrived)
	got.requests = int(scripted.requests.Load())
	return judge(r, got)
}

// open starts a scripted provider and the model that talks to it.
func (a Adapter) open(t *testing.T, where place, http2 bool) (scripted *counted, model provider.Model, end func(), err error) {
	t.Helper()
	scripted = &counted{Provider: a.Provider(), arrived: make(chan struct{}, 1)}
	server := httptest.NewUnstartedServer(scripted)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	transport := provider.NewTransport()
	transport.Proxy = nil
	if http2 || where == stranger {
		server.EnableHTTP2 = http2
		server.StartTLS()
		config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		if where == stranger {
			config.RootCAs = x509.NewCertPool()
		}
		config.NextProtos = nil // the transport offers what it speaks
		transport.TLSClientConfig = config
	} else {
		server.Start()
	}
	end = func() {
		transport.CloseIdleConnections()
		scripted.Close()
		server.Close()
	}
	model, err = a.New(address(t, where, server)+"/v1", transport)
	return scripted, model, end, err
}

// counted counts the requests that arrive whole and can start work, whatever the
// provider makes of them, and says when the first has. Lookups and cancels are
// none.
type counted struct {
	Provider
	requests atomic.Int64
	lookups  atomic.Int64
	cancels  atomic.Int64
	arrived  chan struct{}
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodGet:
		c.lookups.Add(1)
	case strings.HasSuffix(r.URL.Path, "/cancel"):
		c.cancels.Add(1)
	default:
		c.requests.Add(1)
	}
	select {
	case c.arrived <- struct{}{}:
	default:
	}
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.Provider.ServeHTTP(w, r)
}

func address(t *testing.T, p place, server *httptest.Server) string {
	t.Helper()
	if p != nobody && p != mute {
		return server.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if p == nobody {
		_ = l.Close()
		return "http://" + l.Addr().String()
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 1))
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return "http://" + l.Addr().String()
}

func run(ctx context.Context, model provider.Model, r row, arrived <-chan struct{}) result {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if r.silent != nil {
		var waiting sync.WaitGroup
		defer waiting.Wait()
		waiting.Go(func() {
			select {
			case <-arrived:
				stop(r.silent)
			case <-ctx.Done():
			}
		})
		defer stop(nil)
	}
	got := result{call: &Call{}}
	var said strings.Builder
	got.answer, got.err = model.Start(ctx, got.call, request(r.prompt), func(delta string) error {
		said.WriteString(delta)
		if r.stop != nil {
			stop(r.stop)
		}
		return nil
	})
	got.deltas = said.String()
	got.outcome = onereply.Classify(got.err, got.call.Seen(), context.Cause(ctx), time.Now())
	return got
}

// request has a system message and an earlier turn, whose markers do nothing.
func request(prompt string) provider.Request {
	if prompt == "" {
		prompt = "why?"
	}
	return provider.Request{Messages: []provider.Message{
		{Role: provider.System, Text: "Be brief."},
		{Role: provider.User, Text: "[[status 500]] earlier"},
		{Role: provider.Assistant, Text: "an earlier answer"},
		{Role: provider.User, Text: prompt},
	}}
}

// judge says what is wrong with a result.
func judge(r row, got result) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	want := 1
	if r.place != "" {
		want = 0
	}
	if got.requests != want {
		complain("the provider got %d requests, want %d", got.requests, want)
	}
	if allowed, refused := got.call.Sends(); allowed != 1 || refused != 0 {
		complain("the call's one send was taken %d times and asked for %d times more", allowed, refused)
	}
	if seen := got.call.Seen(); seen.Requests > 1 || !seen.Asked {
		complain("observed %+v", seen)
	}
	if strings.Contains(got.deltas, "\x00") {
		complain("a NUL was streamed")
	}
	if r.class == "" {
		return append(wrong, judgeAnswer(r, got)...)
	}
	switch {
	case got.err == nil:
		complain("gave the answer %.40q for a call that ended as %s", got.answer.Text, r.class)
		return wrong
	case got.answer != (provider.Answer{}):
		complain("gave part of an answer beside an error: %.40q", got.answer.Text)
	}
	if got.outcome.Class != r.class || got.outcome.Code != r.code {
		complain("is %s (%s), want %s (%s): %v", got.outcome.Class, got.outcome.Code, r.class, r.code, got.err)
	}
	if got.outcome.RetryAfter != r.after {
		complain("waits %s, want %s", got.outcome.RetryAfter, r.after)
	}
	if f := got.outcome.Failure(); strings.ContainsAny(f.Message, "<\x00\n") || len(f.Message) > 300 {
		complain("shows %.80q to people", f.Message)
	}
	return wrong
}

func judgeAnswer(r row, got result) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if got.err != nil {
		complain("failed: %v", got.err)
		return wrong
	}
	if got.answer.Text != r.text {
		complain("answered %.80q (%d bytes), want %.80q (%d bytes)", got.answer.Text, len(got.answer.Text), r.text, len(r.text))
	}
	if got.deltas != got.answer.Text {
		complain("streamed %.80q and answered %.80q", got.deltas, got.answer.Text)
	}
	reason := "stop"
	if r.truncated {
		reason = "length"
	}
	if got.answer.Truncated != r.truncated || got.answer.FinishReason != reason {
		complain("truncated is %v and the finish reason %q, want %v and %q", got.answer.Truncated, got.answer.FinishReason, r.truncated, reason)
	}
	if got.answer.Model == "" {
		complain("does not say which model answered")
	}
	if r.usage != (onereply.Usage{}) && (got.answer.Usage != r.usage || got.call.Usage() != r.usage) {
		complain("reports the usage %+v and %+v, want %+v", got.answer.Usage, got.call.Usage(), r.usage)
	}
	return wrong
}

// big is what the scripted provider says for [[big n]].
func big(mib int) string {
	return strings.Repeat(strings.Repeat("0123456789abcde", 4369)+" ", mib*16)
}
