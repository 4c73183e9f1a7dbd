package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/internal/sse"
)

const (
	heartbeatEvery = 15 * time.Second
	streamWrite    = 10 * time.Second // for one event to be taken by the connection
)

// Events serves the event stream of a task, for mounting in a mux of one's own
// under a pattern with an {id}:
//
//	mux.Handle("GET /replies/{id}/events", httpapi.Events(eng, authorize))
//
// Authorize says which workspace a request acts for; its errors are
// ErrUnauthorized and ErrForbidden. A task of another workspace is not found.
func Events(e Subscriber, authorize func(*http.Request) (scope string, err error)) http.Handler {
	h := &handler{
		Config: Config{Authorize: authorize, Logger: slog.Default()},
		stream: newStreamer(func(ctx context.Context, scope string, id onereply.TaskID, last string) (subscription, error) {
			return e.Subscribe(ctx, scope, id, last)
		}, nil),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		scope, err := h.Authorize(r)
		if err == nil {
			err = h.streamTask(answer, r, scope)
		}
		if err != nil {
			h.answerError(answer, r, err)
		}
	})
}

// subscription is what a stream needs of *engine.Subscription.
type subscription interface {
	Next(ctx context.Context) (engine.StreamEvent, error)
	Close()
}

// streamer carries events from subscriptions to connections. A stream that
// waits holds no buffer and no goroutine but its request's own.
type streamer struct {
	subscribe func(ctx context.Context, scope string, id onereply.TaskID, last string) (subscription, error)
	shutdown  context.Context // nil: none
}

func newStreamer(subscribe func(context.Context, string, onereply.TaskID, string) (subscription, error), shutdown context.Context) *streamer {
	return &streamer{subscribe: subscribe, shutdown: shutdown}
}

// streamTask answers GET /v1/tasks/{id}/events.
func (h *handler) streamTask(w http.ResponseWriter, r *http.Request, scope string) error {
	s, err := h.openStream(w, r, scope)
	if err != nil {
		return err
	}
	defer s.close()
	if s.over {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache")
	head.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	return s.carry()
}

// liveStream is one open stream. What waits is carry, next and the
// subscription; all else is done in functions of its own, so that a stream that
// waits keeps little stack: thousands of them do nothing but wait.
type liveStream struct {
	ctx    context.Context // ends with the client, or with the server
	close  func()
	w      http.ResponseWriter
	sub    subscription
	render func(string) string
	first  *engine.StreamEvent // found while opening; nil: none
	over   bool                // the reader has everything
}

// openStream judges the request and takes its place in the stream.
func (h *handler) openStream(w http.ResponseWriter, r *http.Request, scope string) (*liveStream, error) {
	query, err := readQuery(r, "last_event_id", "render")
	if err != nil {
		return nil, err
	}
	render, err := h.wantsHTML(query)
	if err != nil {
		return nil, err
	}
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	// The header is the later word: a browser's EventSource keeps the URL it was
	// opened with and moves the header on.
	last := query.Get("last_event_id")
	if given := r.Header.Get("Last-Event-ID"); given != "" {
		last = given
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := func() bool { return true }
	if h.stream.shutdown != nil {
		stop = context.AfterFunc(h.stream.shutdown, cancel)
	}
	sub, err := h.stream.subscribe(ctx, scope, onereply.TaskID(id), last)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	s := &liveStream{ctx: ctx, w: w, sub: sub, render: render}
	s.close = func() {
		sub.Close()
		stop()
		cancel()
	}
	if last == engine.LastID {
		s.peek()
	}
	return s, nil
}

// peek finds out whether a reader that says it has the end has it: a task that
// was resumed since goes on. It does not wait; an event it finds is the first to
// be sent.
func (s *liveStream) peek() {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	event, err := s.sub.Next(ctx)
	if s.over = errors.Is(err, io.EOF); err == nil {
		s.first = &event
	}
}

// carry sends events until the terminal one, the client's end or the shutdown.
func (s *liveStream) carry() error {
	if err := s.begin(); err != nil {
		return err
	}
	for {
		event, err := s.next()
		if more, err := s.pass(event, err); !more {
			return err
		}
	}
}

// begin sends the headers at once, so that the reader knows it is heard.
func (s *liveStream) begin() error {
	if s.first == nil {
		return s.send(nil)
	}
	_, err := s.pass(*s.first, nil)
	return err
}

// pass sends what next has found, and says whether there is more to come.
//
//go:noinline
func (s *liveStream) pass(event engine.StreamEvent, err error) (more bool, _ error) {
	var out []byte
	switch {
	case err == nil:
		if out, err = appendEvent(nil, event, s.render); err != nil {
			return false, err
		}
	case errors.Is(err, errQuiet):
		out = sse.AppendComment(nil, "waiting")
	case errors.Is(err, io.EOF):
		return false, nil
	case s.ctx.Err() != nil, errors.Is(err, onereply.ErrClosed):
		return false, nil //nolint:nilerr // the client left, or the server is shutting down: the reader resumes elsewhere
	default:
		return false, fmt.Errorf("streaming: %w", err)
	}
	err = s.send(out)
	return err == nil, err
}

// errQuiet: nothing happened for as long as a heartbeat may take.
var errQuiet = errors.New("quiet")

// next waits for the next event, or returns errQuiet when a heartbeat is due.
func (s *liveStream) next() (engine.StreamEvent, error) {
	wait, cancel := context.WithTimeoutCause(s.ctx, heartbeatEvery, errQuiet)
	defer cancel()
	return s.sub.Next(wait)
}

// send writes and flushes within a deadline of its own, because a stream has
// none over all.
//
//go:noinline
func (s *liveStream) send(out []byte) error {
	control := http.NewResponseController(s.w)
	if err := setDeadline(control.SetWriteDeadline, streamWrite); err != nil {
		return wireError(err)
	}
	if len(out) > 0 {
		if _, err := s.w.Write(out); err != nil {
			return wireError(err)
		}
	}
	if err := control.Flush(); errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("streaming through a writer that cannot flush: %w", err)
	} else if err != nil {
		return wireError(err)
	}
	return nil
}

// appendEvent gives an event its wire form.
func appendEvent(dst []byte, e engine.StreamEvent, render func(string) string) ([]byte, error) {
	var data any
	switch {
	case e.Task != nil:
		data = wholeTask(*e.Task, render)
	case e.Type == engine.StreamReset:
		data = struct {
			AssignmentVersion int64  `json:"assignment_version"`
			Text              string `json:"text"`
		}{e.Version, e.Text}
	default:
		data = struct {
			Text string `json:"text"`
		}{e.Text}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encoding a stream event: %w", err)
	}
	return sse.Append(dst, sse.Event{ID: e.ID, Type: e.Type, Data: string(raw)}), nil
}
