package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
)

// reader collects a stream as a client does: reset replaces the text, delta
// appends to it.
type reader struct {
	text   string
	last   string
	resets int
	end    *onereply.Task
}

// read follows a subscription until stop says so or the stream ends.
func (r *reader) read(t *testing.T, s *engine.Subscription, stop func(engine.StreamEvent) bool) {
	t.Helper()
	for {
		ev, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("next: %v", err)
			return
		}
		switch ev.Type {
		case engine.StreamDelta:
			r.text += ev.Text
		case engine.StreamReset:
			r.text = ev.Text
			r.resets++
		default:
			if r.end != nil {
				t.Errorf("a second terminal event %s", ev.Type)
			}
			r.end = ev.Task
		}
		r.last = ev.ID
		if stop != nil && stop(ev) {
			return
		}
	}
}

// typist streams n words, one every pace, and fails as the script says.
func typist(n int, pace time.Duration, fail func(version int64, word int) error) *kind {
	k := &kind{Name: "typist"}
	k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (out answer, err error) {
		err = a.Call(ctx, func(ctx context.Context, _ onereply.Call) error {
			for i := range n {
				if fail != nil {
					if err := fail(a.Assignment().Guard.Version, i); err != nil {
						return err
					}
				}
				word := fmt.Sprintf("v%d-%d ", a.Assignment().Guard.Version, i)
				out.Text += word
				if err := a.Draft(ctx, word); err != nil {
					return err
				}
				select {
				case <-time.After(pace):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
		return out, err
	}
	return k
}

func subscribe(t *testing.T, e *engine.Engine, id onereply.TaskID, last string) *engine.Subscription {
	t.Helper()
	s, err := e.Subscribe(t.Context(), "w", id, last)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestAReaderSeesTheDraftGrowAndThenTheResponse(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(100, 20*time.Millisecond, nil)
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		var r reader
		var deltas int
		r.read(t, subscribe(t, e, task.ID, ""), func(ev engine.StreamEvent) bool {
			if ev.Type == engine.StreamDelta {
				deltas++
			}
			return false
		})
		if r.end == nil || r.end.Status != onereply.StatusCompleted || r.resets != 0 || r.last != engine.LastID {
			t.Fatalf("ended with %+v after %d resets, last id %s", r.end, r.resets, r.last)
		}
		whole := strings.TrimSuffix(strings.TrimPrefix(string(r.end.Response), `{"text":"`), `"}`)
		if !strings.HasPrefix(whole, r.text) || len(r.text) < len(whole)/2 {
			t.Errorf("the draft is no prefix of the response:\n%q\n%q", r.text, whole)
		}
		if deltas < 50 {
			t.Errorf("only %d deltas for 100 words: the text did not stream", deltas)
		}
	})
}

func TestAReaderResumesAfterAnyIDWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(40, 20*time.Millisecond, nil)
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		var r reader
		for cut := 1; r.end == nil; cut++ {
			seen := 0
			s := subscribe(t, e, task.ID, r.last)
			r.read(t, s, func(engine.StreamEvent) bool { seen++; return seen >= cut })
			s.Close()
		}
		whole := strings.TrimSuffix(strings.TrimPrefix(string(r.end.Response), `{"text":"`), `"}`)
		if !strings.HasPrefix(whole, r.text) || r.resets != 0 {
			t.Errorf("after %d resets the text is\n%q of\n%q", r.resets, r.text, whole)
		}
	})
}

func TestAnIDThatCannotBeServedBeginsWithAReset(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"999", "1.999", "7.1", "x.y", "1.-1", "1.1.1"} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, h *house) {
				k := typist(20, 20*time.Millisecond, nil)
				e := h.start(engine.Options{}, k)
				task := h.submit(e, k, "k", "x")
				first := subscribe(t, e, task.ID, "")
				var a, b reader
				a.read(t, first, func(ev engine.StreamEvent) bool { return strings.Contains(a.text, "v1-5") })
				first.Close()
				b.read(t, subscribe(t, e, task.ID, last), func(engine.StreamEvent) bool { return b.resets > 0 })
				if b.resets != 1 || !strings.HasPrefix(b.text, a.text) {
					t.Errorf("%d resets, text %q after %q", b.resets, b.text, a.text)
				}
			})
		})
	}
}

func TestATakeoverResetsTheReader(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(30, 20*time.Millisecond, func(version int64, word int) error {
			if version == 1 && word == 10 {
				return onereply.UnknownOutcome(onereply.CodeProviderUnavailable, errBroken)
			}
			return nil
		})
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		var r reader
		r.read(t, subscribe(t, e, task.ID, ""), nil)
		if r.resets != 1 || strings.Contains(r.text, "v1-") || !strings.HasPrefix(r.text, "v2-0 ") {
			t.Errorf("%d resets, text %q", r.resets, r.text)
		}
		if r.end == nil || strings.Contains(string(r.end.Response), "v1-") {
			t.Errorf("ended with %+v", r.end)
		}
	})
}

func TestATakeoverThatNobodySawResetsTheReaderBeforeTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(3, time.Millisecond, func(version int64, word int) error {
			if version == 1 && word == 2 {
				return onereply.UnknownOutcome(onereply.CodeProviderUnavailable, errBroken)
			}
			return nil
		})
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		s := subscribe(t, e, task.ID, "")
		var r reader
		r.read(t, s, func(ev engine.StreamEvent) bool { return ev.Version == 1 })
		h.wait(e, task.ID)
		r.read(t, s, nil)
		if r.resets != 1 || r.text != "" || r.end == nil || r.end.Version != 2 {
			t.Errorf("%d resets, text %q, ended with %+v", r.resets, r.text, r.end)
		}
	})
}

func TestAReaderInAnotherProcessFollowsTheStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(30, 20*time.Millisecond, nil)
		worker := h.start(engine.Options{}, k)
		face := h.start(engine.Options{Workers: -1}, k)
		task := h.submit(face, k, "k", "x")
		var r reader
		deltas := 0
		r.read(t, subscribe(t, face, task.ID, ""), func(ev engine.StreamEvent) bool {
			if ev.Type == engine.StreamDelta {
				deltas++
			}
			return false
		})
		_ = worker
		if r.end == nil || r.end.Status != onereply.StatusCompleted || deltas < 5 {
			t.Errorf("ended with %+v after %d deltas", r.end, deltas)
		}
	})
}

// unhinted is a store whose process never hears of others' commits.
type unhinted struct{ store.Store }

func (unhinted) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

func TestAReaderFindsTheEndThoughEveryHintIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(3, time.Second, nil)
		h.wrap = func(s store.Store) store.Store { return unhinted{s} }
		reads := h.start(engine.Options{Workers: -1, Sweep: -1}, k)
		task := h.submit(reads, k, "k", "x")
		s, err := reads.Subscribe(t.Context(), "w", task.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		h.start(engine.Options{}, k)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var last engine.StreamEvent
		deltas := 0
		for ; err == nil; last, err = s.Next(ctx) {
			if last.Type == engine.StreamDelta {
				deltas++
			}
			if last.Task != nil {
				break
			}
		}
		if err != nil || last.Type != engine.StreamCompleted || deltas == 0 {
			t.Errorf("after %d deltas the reader has %q: %v", deltas, last.Type, err)
		}
	})
}

func TestAnEndedTaskGivesItsTerminalEventAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		h.wait(e, task.ID)
		var r, done reader
		r.read(t, subscribe(t, e, task.ID, "1.4"), nil)
		if r.end == nil || r.end.Status != onereply.StatusCompleted {
			t.Errorf("ended with %+v", r.end)
		}
		done.read(t, subscribe(t, e, task.ID, engine.LastID), nil)
		if done.end != nil {
			t.Error("a reader that had everything got the end again")
		}
	})
}

func TestAReaderOfAnotherScopeFindsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		h.wait(e, task.ID)
		if _, err := e.Subscribe(t.Context(), "other", task.ID, ""); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("subscribe: %v", err)
		}
		if _, err := e.Task(t.Context(), "other", task.ID); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("task: %v", err)
		}
		if _, err := e.Cancel(t.Context(), "other", task.ID); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("cancel: %v", err)
		}
		if _, err := e.Timeline(t.Context(), "other", task.ID); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("timeline: %v", err)
		}
	})
}

func TestReadersEndWhenTheEngineStops(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		e := h.engine(engine.Options{Workers: -1}, k)
		stop := h.run(e)
		task := h.submit(e, k, "k", "x")
		s := subscribe(t, e, task.ID, "")
		got := make(chan error, 1)
		go func() {
			_, err := s.Next(t.Context())
			got <- err
		}()
		synctest.Wait()
		stop()
		if err := <-got; !errors.Is(err, onereply.ErrClosed) {
			t.Errorf("next gave %v", err)
		}
	})
}
