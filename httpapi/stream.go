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
	query, err := readQuery(r, "last_event_id", "render")
	if err != nil {
		return err
	}
	render, err := h.wantsHTML(query)
	if err != nil {
		return err
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	// The header is the later word: a browser's EventSource keeps the URL it was
	// opened with and moves the header on.
	last := query.Get("last_event_id")
	if given := r.Header.Get("Last-Event-ID"); given != "" {
		last = given
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if h.stream.shutdown != nil {
		defer context.AfterFunc(h.stream.shutdown, cancel)()
	}
	sub, err := h.stream.subscribe(ctx, scope, onereply.TaskID(id), last)
	if err != nil {
		return err
	}
	defer sub.Close()
	first, over := peek(ctx, sub, last)
	if over {
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
	return carry(ctx, w, sub, first, render)
}

// peek finds out whether a reader that says it has the end has it: a task that
// was resumed since goes on. It does not wait; an event it finds is the first to
// be sent.
func peek(ctx context.Context, sub subscription, last string) (first *engine.StreamEvent, over bool) {
	if last != engine.LastID {
		return nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	event, err := sub.Next(ctx)
	if err != nil {
		return nil, errors.Is(err, io.EOF)
	}
	return &event, false
}

// carry sends events until the terminal one, the client's end or the shutdown.
func carry(ctx context.Context, w http.ResponseWriter, sub subscription, first *engine.StreamEvent, render func(string) string) error {
	control := http.NewResponseController(w)
	var opening []byte // sent with the headers, at once, so that the reader knows it is heard
	if first != nil {
		var err error
		if opening, err = appendEvent(nil, *first, render); err != nil {
			return err
		}
	}
	if err := send(control, w, opening); err != nil {
		return err
	}
	for {
		event, err := nextWithin(ctx, sub, heartbeatEvery)
		var out []byte
		switch {
		case err == nil:
			if out, err = appendEvent(nil, event, render); err != nil {
				return err
			}
		case errors.Is(err, errQuiet):
			out = sse.AppendComment(nil, "waiting")
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil, errors.Is(err, onereply.ErrClosed):
			return nil // the client left, or the server is shutting down: the reader resumes elsewhere
		default:
			return fmt.Errorf("streaming: %w", err)
		}
		if err := send(control, w, out); err != nil {
			return err
		}
	}
}

// errQuiet: nothing happened for as long as a heartbeat may take.
var errQuiet = errors.New("quiet")

func nextWithin(ctx context.Context, sub subscription, d time.Duration) (engine.StreamEvent, error) {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	event, err := sub.Next(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil && errors.Is(err, wait.Err()) {
		return engine.StreamEvent{}, errQuiet
	}
	return event, err
}

// send writes and flushes within a deadline of its own, because a stream has
// none over all.
func send(control *http.ResponseController, w io.Writer, out []byte) error {
	if err := setDeadline(control.SetWriteDeadline, streamWrite); err != nil {
		return wireError(err)
	}
	if len(out) > 0 {
		if _, err := w.Write(out); err != nil {
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
