package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
)

// waiting is a kind whose call lasts until it is interrupted; it tells its cause.
func waiting(started chan<- struct{}, cause chan<- error) *kind {
	k := &kind{Name: "waiting"}
	k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
		return answer{Text: "late"}, a.Call(ctx, func(ctx context.Context, _ onereply.Call) error {
			started <- struct{}{}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return context.Cause(ctx)
		})
	}
	return k
}

func TestCancelReachesTheCallOfARunningTask(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		name := map[bool]string{false: "in the same process", true: "from another process"}[elsewhere]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, h *house) {
				started, cause := make(chan struct{}, 1), make(chan error, 1)
				k := waiting(started, cause)
				var cancelled []onereply.Status
				k.Ended = func(_ context.Context, _ onereply.Tx, all []onereply.Ended[ask, answer]) error {
					for _, e := range all {
						cancelled = append(cancelled, e.Task.Status)
					}
					return nil
				}
				e := h.start(engine.Options{}, k)
				from := e
				if elsewhere {
					from = h.start(engine.Options{Workers: -1}, k)
				}
				task := h.submit(e, k, "k", "x")
				<-started
				pressed := time.Now()
				got, err := from.Cancel(t.Context(), "w", task.ID)
				if err != nil || got.Status != onereply.StatusCancelled {
					t.Fatalf("cancel gave %s, %v", got.Status, err)
				}
				if c := <-cause; !errors.Is(c, onereply.ErrCancelled) {
					t.Errorf("the call ended with cause %v", c)
				}
				if took := time.Since(pressed); took > 2*time.Second {
					t.Errorf("the call ended %v after the cancel", took)
				}
				if again, err := from.Cancel(t.Context(), "w", task.ID); err != nil || again.Status != onereply.StatusCancelled {
					t.Errorf("again: %s, %v", again.Status, err)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				after, err := e.Task(t.Context(), "w", task.ID)
				if err != nil || after.Status != onereply.StatusCancelled || after.Response != nil || after.Budget.Calls.Used != 1 {
					t.Errorf("a minute later: %+v, %v", after, err)
				}
				if len(cancelled) != 1 || cancelled[0] != onereply.StatusCancelled {
					t.Errorf("the Ended hook saw %v", cancelled)
				}
			})
		})
	}
}

func TestCancelOfAQueuedTaskMakesNoCall(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		face := h.start(engine.Options{Workers: -1}, k)
		task := h.submit(face, k, "k", "x")
		if _, err := face.Cancel(t.Context(), "w", task.ID); err != nil {
			t.Fatal(err)
		}
		h.start(engine.Options{}, k)
		<-time.After(time.Minute)
		after, err := face.Task(t.Context(), "w", task.ID)
		if err != nil || after.Status != onereply.StatusCancelled || after.Budget.Calls.Used != 0 {
			t.Errorf("%+v, %v", after, err)
		}
	})
}

func TestCancelOfACompletedTaskSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		h.wait(e, task.ID)
		got, err := e.Cancel(t.Context(), "w", task.ID)
		if !errors.Is(err, onereply.ErrEnded) || got.Status != onereply.StatusCompleted || got.Response == nil {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestResumeGivesAFailedTaskOneFreshAllowance(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		limited := onereply.RefusedTemporary(onereply.CodeRateLimited, 0, errBroken)
		k, sent := failing(onereply.Policy{MaxCalls: 2}, limited, limited)
		e := h.start(engine.Options{}, k)
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		if task.Reason != onereply.ReasonCallsExhausted {
			t.Fatalf("%s %s", task.Status, task.Reason)
		}
		resume := engine.Resumption{Scope: "w", Task: task.ID, Key: "r1"}
		r, err := e.Resume(t.Context(), resume)
		if err != nil || !r.Created || r.Task.Status != onereply.StatusQueued {
			t.Fatalf("resume gave %+v, %v", r, err)
		}
		done := h.wait(e, task.ID)
		if done.Status != onereply.StatusCompleted || done.ID != task.ID || done.Budget.Calls != (onereply.Bound{Used: 3, Max: 4}) || sent.Load() != 3 {
			t.Errorf("%s, calls %+v, sent %d", done.Status, done.Budget.Calls, sent.Load())
		}
		again, err := e.Resume(t.Context(), resume)
		if err != nil || again.Created || again.Task.Budget.Calls.Max != 4 {
			t.Errorf("the repeated key gave %+v, %v", again, err)
		}
		resume.Key = "r2"
		if _, err := e.Resume(t.Context(), resume); !errors.Is(err, onereply.ErrEnded) {
			t.Errorf("resume of a completed task gave %v", err)
		}
	})
}

func TestResumeAfterThePassedDeadlineNeedsANewOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k, _ := failing(onereply.Policy{}, onereply.RefusedTemporary(onereply.CodeRateLimited, time.Hour, errBroken))
		e := h.start(engine.Options{}, k)
		s, err := k.Submission("w", "k", ask{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		s.Deadline = time.Now().Add(time.Minute)
		sub, err := e.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if task := h.wait(e, sub.Task.ID); task.Reason != onereply.ReasonDeadlineExceeded {
			t.Fatalf("%s %s", task.Status, task.Reason)
		}
		<-time.After(2 * time.Minute)
		r := engine.Resumption{Scope: "w", Task: sub.Task.ID, Key: "r1"}
		if _, err := e.Resume(t.Context(), r); !errors.Is(err, onereply.ErrDeadlineExceeded) {
			t.Fatalf("without a new deadline: %v", err)
		}
		r.Deadline = time.Now().Add(time.Minute)
		if got, err := e.Resume(t.Context(), r); err != nil || !got.Created {
			t.Fatalf("the refused resume used up its key: %+v, %v", got, err)
		}
		if done := h.wait(e, sub.Task.ID); done.Status != onereply.StatusCompleted {
			t.Errorf("%s %s", done.Status, done.Reason)
		}
	})
}

func TestResumeOfAQueuedTaskIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		e := h.start(engine.Options{Workers: -1}, k)
		task := h.submit(e, k, "k", "x")
		if _, err := e.Resume(t.Context(), engine.Resumption{Scope: "w", Task: task.ID, Key: "r"}); !errors.Is(err, onereply.ErrNotFailed) {
			t.Errorf("%v", err)
		}
		if _, err := e.Resume(t.Context(), engine.Resumption{Scope: "v", Task: task.ID, Key: "r"}); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("another scope's: %v", err)
		}
	})
}

func TestADrainReleasesWhatDoesNotEndInItsGrace(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		started, cause := make(chan struct{}, 2), make(chan error, 2)
		k := waiting(started, cause)
		e := h.engine(engine.Options{Drain: 7 * time.Second}, k)
		stop := h.run(e)
		task := h.submit(e, k, "k", "x")
		<-started
		began := time.Now()
		stop()
		if took := time.Since(began); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("the drain took %v", took)
		}
		if c := <-cause; !errors.Is(c, onereply.ErrDraining) {
			t.Errorf("cause %v", c)
		}
		next := h.engine(engine.Options{}, k)
		after, err := next.Task(t.Context(), "w", task.ID)
		if err != nil || after.Status != onereply.StatusQueued || after.Budget.Attempts.Used != 1 || after.Attempts[0].Outcome != onereply.OutcomeInterrupted {
			t.Fatalf("after the drain: %+v, %v", after, err)
		}
		h.run(next)
		<-started // taken up again at once, not after a lease
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("taken up again after %v", took)
		}
	})
}

func TestADrainHandsRecoverableCallsOverAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		started := make(chan struct{}, 2)
		k := &kind{Name: "recoverable"}
		k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			if open := a.Assignment().OpenCall; open != nil {
				return answer{Text: "recovered " + open.Operation}, a.Resolve(ctx, onereply.Resolution{Class: onereply.ClassAnswered})
			}
			return answer{}, a.Call(ctx, func(ctx context.Context, c onereply.Call) error {
				if err := c.Checkpoint(ctx, "op-1"); err != nil {
					return err
				}
				started <- struct{}{}
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}
		e := h.engine(engine.Options{Drain: time.Hour}, k)
		stop := h.run(e)
		task := h.submit(e, k, "k", "x")
		<-started
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the drain took %v", took)
		}
		next := h.start(engine.Options{}, k)
		done := h.wait(next, task.ID)
		if string(done.Response) != `{"text":"recovered op-1"}` || done.Budget.Calls.Used != 1 {
			t.Errorf("%s after %d calls", done.Response, done.Budget.Calls.Used)
		}
	})
}
