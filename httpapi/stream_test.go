package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
)

// script is a subscription that plays events from a channel; closing it ends
// the stream.
type script struct {
	events chan engine.StreamEvent
	closed bool
}

func (s *script) Next(ctx context.Context) (engine.StreamEvent, error) {
	select { // what is there already comes before the context's end
	case e, open := <-s.events:
		return s.given(e, open)
	default:
	}
	select {
	case e, open := <-s.events:
		return s.given(e, open)
	case <-ctx.Done():
		return engine.StreamEvent{}, context.Cause(ctx)
	}
}

func (s *script) given(e engine.StreamEvent, open bool) (engine.StreamEvent, error) {
	if !open {
		return engine.StreamEvent{}, io.EOF
	}
	return e, nil
}

func (s *script) Close() { s.closed = true }

// wire is a connection's writer that tells what was sent at which second.
type wire struct {
	header http.Header
	status int
	mu     sync.Mutex
	sent   strings.Builder
	began  time.Time
	broken atomic.Bool
}

var errBroken = errors.New("broken pipe")

func (w *wire) Header() http.Header    { return w.header }
func (w *wire) WriteHeader(status int) { w.status = status }
func (w *wire) FlushError() error {
	if w.broken.Load() {
		return errBroken
	}
	return nil
}
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken.Load() {
		return 0, errBroken
	}
	w.sent.WriteString(time.Since(w.began).String() + "> " + string(b))
	return len(b), nil
}

func streamWith(sub *script, shutdown context.Context) *handler {
	return &handler{
		Config: Config{Logger: quiet()},
		stream: newStreamer(func(context.Context, string, onereply.TaskID, string) (subscription, error) { return sub, nil }, shutdown),
	}
}

func streamRequest(ctx context.Context, query string, lastID string) *http.Request {
	r := httptest.NewRequest("GET", "/v1/tasks/"+someID+"/events"+query, nil).WithContext(ctx)
	r.SetPathValue("id", someID)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	return r
}

func TestStreamSendsEventsAndHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sub := &script{events: make(chan engine.StreamEvent, 8)}
		w := &wire{header: http.Header{}, began: time.Now()}
		done := make(chan error, 1)
		go func() { done <- streamWith(sub, nil).streamTask(w, streamRequest(t.Context(), "", ""), "w") }()
		<-time.After(20 * time.Second) // of the bubble: a heartbeat after 15
		sub.events <- engine.StreamEvent{ID: "1.1", Type: "delta", Version: 1, Text: "a\nb"}
		<-time.After(time.Second)
		sub.events <- engine.StreamEvent{ID: "2.0", Type: "reset", Version: 2, Text: ""}
		<-time.After(16 * time.Second)
		task := &onereply.Task{ID: someID, Kind: "reply", Status: onereply.StatusCancelled}
		sub.events <- engine.StreamEvent{ID: engine.LastID, Type: "cancelled", Version: 2, Task: task}
		close(sub.events)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := "15s> : waiting\n\n" +
			"20s> id: 1.1\nevent: delta\ndata: {\"text\":\"a\\nb\"}\n\n" +
			"21s> id: 2.0\nevent: reset\ndata: {\"assignment_version\":2,\"text\":\"\"}\n\n" +
			"36s> : waiting\n\n" +
			"37s> id: end\nevent: cancelled\ndata: "
		if got := w.sent.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\nevent: ") != 3 {
			t.Error(cmp.Diff(want, got))
		}
		for name, value := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"} {
			if w.header.Get(name) != value {
				t.Errorf("%s: %q", name, w.header.Get(name))
			}
		}
		if !sub.closed {
			t.Error("the subscription was not closed")
		}
	})
}

func TestStreamEndsWithItsClientWithTheServerAndWithABrokenConnection(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"client", "server", "connection", "engine"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sub := &script{events: make(chan engine.StreamEvent, 1)}
				client, leave := context.WithCancel(t.Context())
				defer leave()
				server, stop := context.WithCancel(t.Context())
				defer stop()
				w := &wire{header: http.Header{}, began: time.Now()}
				done := make(chan error, 1)
				go func() { done <- streamWith(sub, server).streamTask(w, streamRequest(client, "", ""), "w") }()
				synctest.Wait()
				switch who {
				case "client":
					leave()
				case "server":
					stop()
				case "connection":
					w.broken.Store(true)
				case "engine":
					sub.events <- engine.StreamEvent{Type: "delta", Text: "x", ID: "1.1"}
					close(sub.events)
				}
				err := <-done
				if wantErr := who == "connection"; wantErr != (err != nil) || wantErr && !errors.Is(err, errWire) {
					t.Error(err)
				}
				if !sub.closed {
					t.Error("the subscription was not closed")
				}
			})
		})
	}
}

func TestAReaderThatHasTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, query, header string
		events              []engine.StreamEvent
		over                bool
		status              int
		body                string
	}{
		{"gets 204 by the header", "", "end", nil, true, 204, ""},
		{"gets 204 by the parameter", "?last_event_id=end", "", nil, true, 204, ""},
		{"gets what came since when the task was resumed", "", "end", []engine.StreamEvent{{ID: "3.1", Type: "reset", Version: 3, Text: "x"}}, true, 200,
			"id: 3.1\nevent: reset\ndata: {\"assignment_version\":3,\"text\":\"x\"}\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sub := &script{events: make(chan engine.StreamEvent, 8)}
			for _, e := range c.events {
				sub.events <- e
			}
			close(sub.events)
			w := httptest.NewRecorder()
			if err := streamWith(sub, nil).streamTask(w, streamRequest(t.Context(), c.query, c.header), "w"); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.status, c.body)
			}
		})
	}
}

func TestTheHeaderWinsOverTheParameter(t *testing.T) {
	t.Parallel()
	var got string
	h := &handler{Config: Config{Logger: quiet()}, stream: newStreamer(
		func(_ context.Context, _ string, _ onereply.TaskID, last string) (subscription, error) {
			got = last
			return nil, onereply.ErrNotFound
		}, nil)}
	err := h.streamTask(httptest.NewRecorder(), streamRequest(t.Context(), "?last_event_id=1.1", "1.2"), "w")
	if !errors.Is(err, onereply.ErrNotFound) || got != "1.2" {
		t.Errorf("%q %v", got, err)
	}
}
