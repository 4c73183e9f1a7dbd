package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
)

// faulty stands between engine and store: it loses the answer of commits, and
// breaks calls, as the test says.
type faulty struct {
	store.Store
	loseCommit atomic.Int32 // so many InTx commit and answer "unknown"
	breakTx    atomic.Int32 // so many InTx do nothing and answer "unavailable"
	breakWrite atomic.Int32 // so many Record likewise
}

func take(n *atomic.Int32) bool { return n.Load() > 0 && n.Add(-1) >= 0 }

func (f *faulty) InTx(ctx context.Context, run func(context.Context, onereply.Tx) error) error {
	if take(&f.breakTx) {
		return fmt.Errorf("planted: %w", onereply.ErrUnavailable)
	}
	err := f.Store.InTx(ctx, run)
	if err == nil && take(&f.loseCommit) {
		return fmt.Errorf("planted: %w", onereply.ErrCommitUnknown)
	}
	return err
}

func (f *faulty) Record(ctx context.Context, r []store.Record) ([]store.Verdict, error) {
	if take(&f.breakWrite) {
		return nil, fmt.Errorf("planted: %w", onereply.ErrUnavailable)
	}
	return f.Store.Record(ctx, r)
}

func (h *house) faulty() *faulty {
	f := &faulty{Store: h.store}
	h.wrap = func(store.Store) store.Store { return f }
	return f
}

func TestASubmitWhoseCommitAnswerIsLostIsReadByItsKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		f := h.faulty()
		k := echo()
		var created atomic.Int32
		k.Created = func(_ context.Context, _ onereply.Tx, c []onereply.Created[ask]) error {
			created.Add(int32(len(c)))
			return nil
		}
		e := h.start(engine.Options{Workers: -1}, k)
		f.loseCommit.Store(1)
		s, err := k.Submission("w", "k", ask{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Submit(t.Context(), s)
		if err != nil || !r.Created {
			t.Fatalf("%+v, %v", r, err)
		}
		again, err := e.Submit(t.Context(), s)
		if err != nil || again.Created || again.Task.ID != r.Task.ID || created.Load() != 1 {
			t.Errorf("again: %+v, %v; the hook ran %d times", again, err, created.Load())
		}
	})
}

func TestAnAcceptWhoseCommitAnswerIsLostIsReadBeforeAnythingIsDoneAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		f := h.faulty()
		k := echo()
		var ended atomic.Int32
		k.Ended = func(_ context.Context, _ onereply.Tx, all []onereply.Ended[ask, answer]) error {
			ended.Add(int32(len(all)))
			f.loseCommit.Store(1)
			return nil
		}
		e := h.start(engine.Options{}, k)
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		<-time.After(time.Minute)
		if task.Status != onereply.StatusCompleted || task.Budget.Calls.Used != 1 || ended.Load() != 1 {
			t.Errorf("%s after %d calls, the hook ran %d times", task.Status, task.Budget.Calls.Used, ended.Load())
		}
		if got := h.events(e, task.ID); has(got, onereply.EventFencedOut) {
			t.Errorf("the attempt fenced itself out: %v", got)
		}
	})
}

func TestAnAcceptIsTriedAgainWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		f := h.faulty()
		k := echo()
		work := k.Work
		k.Work = func(ctx context.Context, a onereply.Attempt, in ask) (answer, error) {
			out, err := work(ctx, a, in)
			f.breakTx.Store(5)
			return out, err
		}
		e := h.start(engine.Options{}, k)
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		if task.Status != onereply.StatusCompleted || task.Budget.Calls.Used != 1 || task.Version != 1 {
			t.Errorf("%s version %d after %d calls", task.Status, task.Version, task.Budget.Calls.Used)
		}
	})
}

func TestRenewalsSurviveAStoreThatIsAwayForLessThanTheLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		f := h.faulty()
		k := &kind{Name: "slow"}
		k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			f.breakWrite.Store(4)
			select {
			case <-time.After(2 * time.Minute):
				return answer{Text: "done"}, nil
			case <-ctx.Done():
				return answer{}, context.Cause(ctx)
			}
		}
		e := h.start(engine.Options{}, k)
		if task := h.wait(e, h.submit(e, k, "k", "x").ID); task.Version != 1 || task.Status != onereply.StatusCompleted {
			t.Errorf("%s version %d", task.Status, task.Version)
		}
	})
}

func TestAnAttemptLosesItsContextWhenItsLeaseCannotBeRenewed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		f := h.faulty()
		cause := make(chan error, 9)
		k := &kind{Name: "slow"}
		k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			if a.Assignment().Guard.Version > 1 {
				return answer{Text: "second"}, nil
			}
			f.breakWrite.Store(1000)
			began := time.Now()
			<-ctx.Done()
			f.breakWrite.Store(0)
			cause <- context.Cause(ctx)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("the context ended only after %v", took)
			}
			return answer{Text: "first"}, nil
		}
		e := h.start(engine.Options{}, k)
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		if c := <-cause; !errors.Is(c, onereply.ErrLeaseLost) {
			t.Errorf("cause %v", c)
		}
		if task.Status != onereply.StatusCompleted {
			t.Errorf("%s", task.Status)
		}
	})
}

func TestAHookThatFailsFailsItsOwnTaskAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		k.Created = func(_ context.Context, _ onereply.Tx, all []onereply.Created[ask]) error {
			for _, c := range all {
				if c.In.Text == "bad" {
					return errBroken
				}
			}
			return nil
		}
		e := h.start(engine.Options{}, k)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				text := "good"
				if i == 7 {
					text = "bad"
				}
				s, err := k.Submission("w", fmt.Sprint(i), ask{Text: text})
				if err != nil {
					t.Error(err)
					return
				}
				r, err := e.Submit(t.Context(), s)
				switch {
				case i == 7 && !errors.Is(err, errBroken):
					t.Errorf("the bad one gave %v", err)
				case i != 7 && (err != nil || !r.Created):
					t.Errorf("good one %d gave %+v, %v", i, r, err)
				}
			})
		}
		wg.Wait()
		all, err := e.Tasks(t.Context(), store.Query{Scope: "w", Limit: 100})
		if err != nil || len(all) != 19 {
			t.Errorf("%d tasks, %v; want 19", len(all), err)
		}
	})
}

func TestAnEndedHookThatFailsIsTriedAgainWithTheSameCandidate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		var tries atomic.Int32
		k.Ended = func(context.Context, onereply.Tx, []onereply.Ended[ask, answer]) error {
			if tries.Add(1) < 4 {
				return errBroken
			}
			return nil
		}
		e := h.start(engine.Options{}, k)
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		if task.Status != onereply.StatusCompleted || task.Budget.Calls.Used != 1 || tries.Load() != 4 {
			t.Errorf("%s after %d calls and %d tries", task.Status, task.Budget.Calls.Used, tries.Load())
		}
	})
}

func TestUnderFirstValidALateAnswerFillsAnEmptySlot(t *testing.T) {
	t.Parallel()
	for _, rule := range []onereply.Acceptance{onereply.CurrentAssignment, onereply.FirstValid} {
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, h *house) {
				k := &kind{Name: "k", Policy: onereply.Policy{Acceptance: rule, CallTimeout: time.Second}}
				k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
					wait := 50 * time.Second // beyond its lease, before its successor
					if a.Assignment().Guard.Version > 1 {
						wait = 25 * time.Second
					}
					<-time.After(wait)
					return answer{Text: fmt.Sprint("v", a.Assignment().Guard.Version)}, nil
				}
				e := h.start(engine.Options{}, k)
				task := h.wait(e, h.submit(e, k, "k", "x").ID)
				want := map[onereply.Acceptance]string{onereply.CurrentAssignment: `{"text":"v2"}`, onereply.FirstValid: `{"text":"v1"}`}[rule]
				if string(task.Response) != want {
					t.Errorf("response %s, want %s", task.Response, want)
				}
				<-time.After(time.Minute)
				after, err := e.Task(t.Context(), "w", task.ID)
				if err != nil || string(after.Response) != want {
					t.Errorf("a minute later %s, %v", after.Response, err)
				}
			})
		})
	}
}

func TestAHookThatGoesOnFailingShowsItsCauseOnTheTask(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		k.Policy = onereply.Policy{MaxAttempts: 2, MaxElapsed: time.Minute}
		var well atomic.Bool
		var calls atomic.Int32
		k.Ended = func(context.Context, onereply.Tx, []onereply.Ended[ask, answer]) error {
			calls.Add(1)
			if !well.Load() {
				return errBroken
			}
			return nil
		}
		e := h.start(engine.Options{}, k)
		id := h.submit(e, k, "k", "x").ID
		<-time.After(3 * time.Minute)
		stuck, err := e.Task(t.Context(), "w", id)
		if err != nil || stuck.Status.Ended() || stuck.Error == nil || stuck.Error.Code != "hook_failed" || strings.Contains(stuck.Error.Message, "broken") {
			t.Fatalf("%s, error %+v, %v", stuck.Status, stuck.Error, err)
		}
		if stuck.Budget.Calls.Used > 2 {
			t.Errorf("%d calls were paid for", stuck.Budget.Calls.Used)
		}
		if !has(h.events(e, id), onereply.EventRetried) {
			t.Errorf("the timeline does not show it: %v", h.events(e, id))
		}
		if n := calls.Load(); n > 2000 {
			t.Errorf("the hook ran %d times in three minutes", n)
		}
		well.Store(true)
		if task := h.wait(e, id); !task.Status.Ended() {
			t.Errorf("%s once the hook is well", task.Status)
		}
	})
}

func TestAPanicInAHookIsAnErrorForWhoeverRunsIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		k.Ended = func(context.Context, onereply.Tx, []onereply.Ended[ask, answer]) error { panic("boom") }
		e := h.start(engine.Options{Workers: -1}, k)
		id := h.submit(e, k, "k", "x").ID
		if _, err := e.Cancel(t.Context(), "w", id); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("cancel gave %v", err)
		}
		if task, err := e.Task(t.Context(), "w", id); err != nil || task.Status != onereply.StatusQueued {
			t.Errorf("%s, %v", task.Status, err)
		}
		k.Created = func(context.Context, onereply.Tx, []onereply.Created[ask]) error { panic("bang") }
		f := h.start(engine.Options{Workers: -1}, k)
		s, err := k.Submission("w", "other", ask{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Submit(t.Context(), s); err == nil || !strings.Contains(err.Error(), "bang") {
			t.Errorf("submit gave %v", err)
		}
	})
}

func TestReadersSeeTheEndsOfADrain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(50, 20*time.Millisecond, nil)
		e := h.engine(engine.Options{}, k)
		stop := h.run(e)
		id := h.submit(e, k, "k", "x").ID
		s := subscribe(t, e, id, "")
		read := make(chan reader, 1)
		go func() {
			var r reader
			r.read(t, s, nil)
			read <- r
		}()
		<-time.After(300 * time.Millisecond)
		stop()
		if r := <-read; r.end == nil || r.end.Status != onereply.StatusCompleted {
			t.Errorf("the stream ended with %+v after %q", r.end, r.text)
		}
	})
}
