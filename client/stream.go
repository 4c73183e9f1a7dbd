package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/internal/sse"
)

const (
	maxEvent = 32 << 20         // bytes of one event; a reset carries the whole draft
	silence  = 45 * time.Second // three heartbeats of the server without a byte: the line is dead
)

// Delta is one piece of a reply's live text. The text is provisional until the
// task has completed.
type Delta struct {
	ID    string // of the event; the place to go on from
	Reset bool   // forget what came before: Text is the whole draft so far
	Text  string
}

// Follow hands each piece of a task's live text to show, in order and each
// once, and returns the task once it has ended. A connection that breaks is
// taken up again after the last event; last is where to begin, empty for the
// beginning of the current draft. An error of show ends it.
func (c *Client) Follow(ctx context.Context, id, last string, show func(Delta) error) (Task, error) {
	f := &follower{c: c, id: id, last: last, show: show, patience: c.patience()}
	for {
		task, err := f.connect(ctx)
		if err == nil {
			return task, nil
		}
		if !passing(err) {
			return Task{}, err
		}
		if err := f.patience.wait(ctx, err); err != nil {
			return Task{}, err
		}
	}
}

type follower struct {
	c        *Client
	id, last string
	show     func(Delta) error
	patience *patience
}

// connect reads one connection to its end.
func (f *follower) connect(ctx context.Context) (Task, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := request{method: http.MethodGet, path: taskPath(f.id, "/events")}
	if f.last != "" {
		q.query = url.Values{"last_event_id": {f.last}}
	}
	resp, err := f.c.send(ctx, q, nil)
	if err != nil {
		return Task{}, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNoContent: // everything was read before: the end as well
		return f.c.Task(ctx, f.id)
	case resp.StatusCode != http.StatusOK:
		return Task{}, readProblem(resp)
	}
	watched := watch(resp.Body, silence, cancel)
	defer watched.stop()
	events := sse.NewReader(watched, maxEvent)
	for {
		e, err := events.Next()
		if err != nil {
			return Task{}, f.broke(ctx, err)
		}
		task, ended, err := f.take(e)
		if err != nil || ended {
			return task, err
		}
	}
}

// take handles one event.
func (f *follower) take(e sse.Event) (task Task, ended bool, err error) {
	switch e.Type {
	case "delta", "reset":
		var body struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal([]byte(e.Data), &body); err != nil {
			return Task{}, false, fmt.Errorf("task %s: event %s is not the JSON expected: %w", f.id, e.ID, err)
		}
		f.patience.progress()
		if err := f.show(Delta{ID: e.ID, Reset: e.Type == "reset", Text: body.Text}); err != nil {
			return Task{}, false, err
		}
		f.last = e.ID
		return Task{}, false, nil
	case string(onereply.StatusCompleted), string(onereply.StatusFailed), string(onereply.StatusCancelled):
		if err := json.Unmarshal([]byte(e.Data), &task); err != nil {
			return Task{}, false, fmt.Errorf("task %s: the last event is not the JSON expected: %w", f.id, err)
		}
		return task, true, nil
	}
	return Task{}, false, nil // a type of a later version
}

// broke says why a stream ended before its terminal event.
func (f *follower) broke(ctx context.Context, err error) error {
	if errors.Is(err, sse.ErrTooLong) {
		return fmt.Errorf("task %s: %w", f.id, err)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		err = cause
	}
	return &broken{fmt.Errorf("the stream of task %s broke off: %w", f.id, err)}
}

var errSilent = errors.New("nothing was heard from the server")

// watched ends a connection that has gone silent: a server that is there sends
// heartbeats. It is for one goroutine; only the timer's function runs beside it.
type watched struct {
	io.Reader
	timer   *time.Timer
	patient time.Duration
}

func watch(r io.Reader, patient time.Duration, cancel context.CancelCauseFunc) *watched {
	return &watched{Reader: r, patient: patient, timer: time.AfterFunc(patient, func() { cancel(errSilent) })}
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	w.timer.Reset(w.patient)
	return n, err
}

func (w *watched) stop() {
	w.timer.Stop()
}
