package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

// ask and answer are the input and response of the tests' kind.
type ask struct {
	Text string `json:"text"`
}

type answer struct {
	Text string `json:"text"`
}

type kind = onereply.Definition[ask, answer]

// house is one SQLite file in a synctest bubble, with as many engines on it as a
// test starts. Time is virtual: a 30 second takeover takes no time.
type house struct {
	t     *testing.T
	store *sqlite.Store
	wrap  func(store.Store) store.Store // faults between engine and store
}

// bubble runs a test in a synctest bubble on a fresh store.
func bubble(t *testing.T, f func(t *testing.T, h *house)) {
	t.Helper()
	bubbleWith(t, sqlite.Options{}, f)
}

func bubbleWith(t *testing.T, o sqlite.Options, f func(t *testing.T, h *house)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	o.Migrate = true
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		f(t, &house{t: t, store: s, wrap: func(s store.Store) store.Store { return s }})
	})
}

// engine makes an engine that is not running.
func (h *house) engine(o engine.Options, kinds ...*kind) *engine.Engine {
	h.t.Helper()
	for _, k := range kinds {
		o.Kinds = append(o.Kinds, k.Kind())
	}
	o.Store = h.wrap(h.store)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Draw == nil {
		o.Draw = func(n int64) int64 { return n / 2 }
	}
	e, err := engine.New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// run starts an engine and returns a function that drains it and waits.
func (h *house) run(e *engine.Engine) (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("run: %v", err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// start makes an engine and runs it until the test ends.
func (h *house) start(o engine.Options, kinds ...*kind) *engine.Engine {
	h.t.Helper()
	e := h.engine(o, kinds...)
	h.run(e)
	return e
}

func (h *house) submit(e *engine.Engine, k *kind, key, text string) onereply.Task {
	h.t.Helper()
	s, err := k.Submission("w", key, ask{Text: text})
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := e.Submit(h.t.Context(), s)
	if err != nil {
		h.t.Fatal(err)
	}
	return r.Task
}

// wait waits for the end of a task, a virtual hour at most.
func (h *house) wait(e *engine.Engine, id onereply.TaskID) onereply.Task {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Hour)
	defer cancel()
	task, err := e.Wait(ctx, "w", id)
	if err != nil {
		h.t.Fatalf("waiting for %s: %v (it is %s)", id, err, task.Status)
	}
	return task
}

func (h *house) events(e *engine.Engine, id onereply.TaskID) (types []onereply.EventType) {
	h.t.Helper()
	timeline, err := e.Timeline(h.t.Context(), "w", id)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, ev := range timeline {
		types = append(types, ev.Type)
	}
	return types
}

func has(types []onereply.EventType, want onereply.EventType) bool {
	for _, got := range types {
		if got == want {
			return true
		}
	}
	return false
}

// echo is a kind that answers at once, making one call.
func echo() *kind {
	return &kind{
		Name: "echo",
		Work: func(ctx context.Context, a onereply.Attempt, in ask) (out answer, err error) {
			err = a.Call(ctx, func(_ context.Context, c onereply.Call) error {
				out = answer{Text: "you said " + in.Text}
				return c.Send()
			})
			return out, err
		},
	}
}

var errBroken = errors.New("broken")
