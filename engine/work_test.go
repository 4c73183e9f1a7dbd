package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
)

func TestATaskIsWorkedAndItsResponseAcceptedOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		var created, ended atomic.Int32
		k.Created = func(_ context.Context, _ onereply.Tx, c []onereply.Created[ask]) error {
			created.Add(int32(len(c)))
			return nil
		}
		k.Ended = func(_ context.Context, _ onereply.Tx, all []onereply.Ended[ask, answer]) error {
			for _, e := range all {
				if e.Task.Status != onereply.StatusCompleted || e.Out == nil || e.Out.Text != "you said hello" || e.In.Text != "hello" {
					t.Errorf("ended hook got %+v", e)
				}
			}
			ended.Add(int32(len(all)))
			return nil
		}
		e := h.start(engine.Options{}, k)
		first := h.submit(e, k, "k1", "hello")
		task := h.wait(e, first.ID)
		again := h.submit(e, k, "k1", "hello")
		if again.ID != first.ID || again.Status != onereply.StatusCompleted {
			t.Errorf("replay gave task %s %s, want %s completed", again.ID, again.Status, first.ID)
		}
		if string(task.Response) != `{"text":"you said hello"}` {
			t.Errorf("response %s", task.Response)
		}
		if task.Version != 1 || task.Budget.Attempts.Used != 1 || task.Budget.Calls.Used != 1 {
			t.Errorf("version %d, budget %+v", task.Version, task.Budget)
		}
		if created.Load() != 1 || ended.Load() != 1 {
			t.Errorf("hooks ran %d and %d times", created.Load(), ended.Load())
		}
	})
}

func TestAKeyWithOtherInputsIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		e := h.start(engine.Options{}, k)
		h.submit(e, k, "k1", "hello")
		s, err := k.Submission("w", "k1", ask{Text: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Submit(t.Context(), s); !errors.Is(err, onereply.ErrKeyReused) {
			t.Errorf("got %v, want ErrKeyReused", err)
		}
	})
}

// failing makes calls that end in the given errors, one per attempt, and then
// succeed.
func failing(policy onereply.Policy, ends ...error) (*kind, *atomic.Int32) {
	var sent atomic.Int32
	k := &kind{Name: "failing", Policy: policy}
	k.Work = func(ctx context.Context, a onereply.Attempt, in ask) (answer, error) {
		err := a.Call(ctx, func(_ context.Context, c onereply.Call) error {
			if err := c.Send(); err != nil {
				return err
			}
			if n := int(sent.Add(1)); n <= len(ends) {
				return ends[n-1]
			}
			return nil
		})
		return answer(in), err
	}
	return k, &sent
}

func TestWhatFollowsAFailedCall(t *testing.T) {
	t.Parallel()
	unknown := onereply.UnknownOutcome(onereply.CodeTimeout, errBroken)
	limited := onereply.RefusedTemporary(onereply.CodeRateLimited, 0, errBroken)
	for _, c := range []struct {
		name   string
		policy onereply.Policy
		ends   []error
		calls  int32
		status onereply.Status
		reason onereply.Reason
		code   string
	}{
		{"an unknown outcome is retried within the call budget", onereply.Policy{}, []error{unknown}, 2, onereply.StatusCompleted, "", ""},
		{"under stop an unknown outcome ends the task", onereply.Policy{OnUnknown: onereply.UnknownStop}, []error{unknown}, 1, onereply.StatusFailed, onereply.ReasonOutcomeUnknown, "timeout"},
		{"a temporary refusal is retried under stop too", onereply.Policy{OnUnknown: onereply.UnknownStop}, []error{limited}, 2, onereply.StatusCompleted, "", ""},
		{"calls are bounded", onereply.Policy{MaxCalls: 2}, []error{limited, limited, limited}, 2, onereply.StatusFailed, onereply.ReasonCallsExhausted, "rate_limited"},
		{"attempts are bounded", onereply.Policy{MaxAttempts: 2, MaxCalls: 9}, []error{limited, limited, limited}, 2, onereply.StatusFailed, onereply.ReasonAttemptsExhausted, "rate_limited"},
		{"a permanent refusal ends the task after one call", onereply.Policy{}, []error{onereply.RefusedPermanent(onereply.CodeContentFiltered, errBroken)}, 1, onereply.StatusFailed, onereply.ReasonPermanent, "content_filtered"},
		{"a useless answer is retried", onereply.Policy{}, []error{onereply.Useless(onereply.CodeEmptyAnswer, errBroken)}, 2, onereply.StatusCompleted, "", ""},
		{"an error without a class in a call is unknown", onereply.Policy{OnUnknown: onereply.UnknownStop}, []error{errBroken}, 1, onereply.StatusFailed, onereply.ReasonOutcomeUnknown, "provider_unavailable"},
		{"a wish to come back after the budget ends the task", onereply.Policy{MaxElapsed: time.Minute}, []error{onereply.RefusedTemporary(onereply.CodeRateLimited, 3*time.Hour, errBroken)}, 1, onereply.StatusFailed, onereply.ReasonElapsedExhausted, "rate_limited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, h *house) {
				k, sent := failing(c.policy, c.ends...)
				e := h.start(engine.Options{}, k)
				task := h.wait(e, h.submit(e, k, "k", "x").ID)
				if task.Status != c.status || task.Reason != c.reason || sent.Load() != c.calls {
					t.Errorf("%s %q after %d calls, want %s %q after %d", task.Status, task.Reason, sent.Load(), c.status, c.reason, c.calls)
				}
				if c.code != "" && (task.Error == nil || task.Error.Code != c.code) {
					t.Errorf("error %+v, want code %s", task.Error, c.code)
				}
				if int32(task.Budget.Calls.Used) != c.calls {
					t.Errorf("%d calls counted, %d sent", task.Budget.Calls.Used, c.calls)
				}
			})
		})
	}
}

func TestASecondSendInOneCallIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "twice", Work: func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			return answer{}, a.Call(ctx, func(_ context.Context, c onereply.Call) error {
				if err := c.Send(); err != nil {
					t.Errorf("first send: %v", err)
				}
				if err := c.Send(); !errors.Is(err, onereply.ErrUncounted) {
					t.Errorf("second send gave %v, want ErrUncounted", err)
				}
				return nil
			})
		}}
		e := h.start(engine.Options{}, k)
		h.wait(e, h.submit(e, k, "k", "x").ID)
	})
}

func TestAWorkerLostInACallIsTakenOverAndTheCallIsUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy onereply.UnknownPolicy
		status onereply.Status
		reason onereply.Reason
		calls  int
	}{
		{onereply.UnknownRetry, onereply.StatusCompleted, "", 2},
		{onereply.UnknownStop, onereply.StatusFailed, onereply.ReasonOutcomeUnknown, 1},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, h *house) {
				frozen := make(chan struct{})
				thaw := make(chan struct{})
				k := &kind{Name: "k", Policy: onereply.Policy{OnUnknown: c.policy, CallTimeout: time.Second}}
				k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (out answer, err error) {
					err = a.Call(ctx, func(_ context.Context, call onereply.Call) error {
						if a.Assignment().Guard.Version == 1 {
							close(frozen)
							<-thaw // it ignores its context, as a stopped process does
							out.Text = "OLD"
							return nil
						}
						out.Text = "NEW"
						return nil
					})
					return out, err
				}
				first := h.start(engine.Options{Name: "same", Workers: 1}, k)
				task := h.submit(first, k, "k", "x")
				<-frozen
				second := h.start(engine.Options{Name: "same"}, k)
				ended := h.wait(second, task.ID)
				close(thaw)
				synctest.Wait()
				if ended.Status != c.status || ended.Reason != c.reason || ended.Version != 2 || ended.Budget.Calls.Used != c.calls {
					t.Errorf("%s %q version %d calls %d", ended.Status, ended.Reason, ended.Version, ended.Budget.Calls.Used)
				}
				after, err := second.Task(t.Context(), "w", task.ID)
				if err != nil {
					t.Fatal(err)
				}
				if string(after.Response) != string(ended.Response) || after.Status != ended.Status || after.Error != nil && ended.Error == nil {
					t.Errorf("the late answer changed the task: %+v", after)
				}
				if got := after.Attempts[0].Outcome; got != onereply.OutcomeLeaseExpired {
					t.Errorf("the lost attempt's outcome is %s", got)
				}
				if !has(h.events(second, task.ID), onereply.EventFencedOut) {
					t.Errorf("the timeline does not show the late answer: %v", h.events(second, task.ID))
				}
			})
		})
	}
}

func TestALongCallKeepsItsLeaseWhileItShowsSignsOfLife(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "slow", Policy: onereply.Policy{CallTimeout: 10 * time.Minute}}
		k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			return answer{Text: "done"}, a.Call(ctx, func(ctx context.Context, _ onereply.Call) error {
				select {
				case <-time.After(5 * time.Minute):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		}
		e := h.start(engine.Options{}, k)
		h.start(engine.Options{}, k) // would take over
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		if task.Status != onereply.StatusCompleted || task.Version != 1 || task.Budget.Calls.Used != 1 {
			t.Errorf("%s version %d calls %d", task.Status, task.Version, task.Budget.Calls.Used)
		}
	})
}

func TestACallEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "hang", Policy: onereply.Policy{CallTimeout: time.Minute, OnUnknown: onereply.UnknownStop}}
		k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			return answer{}, a.Call(ctx, func(ctx context.Context, _ onereply.Call) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}
		e := h.start(engine.Options{}, k)
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		if task.Reason != onereply.ReasonOutcomeUnknown || task.Error.Code != onereply.CodeTimeout {
			t.Errorf("%s %+v", task.Reason, task.Error)
		}
	})
}

func TestADeadlineEndsATaskInACall(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "hang"}
		k.Work = func(ctx context.Context, _ onereply.Attempt, _ ask) (answer, error) {
			<-ctx.Done()
			return answer{}, context.Cause(ctx)
		}
		e := h.start(engine.Options{}, k)
		s, err := k.Submission("w", "k", ask{})
		if err != nil {
			t.Fatal(err)
		}
		s.Deadline = time.Now().Add(5 * time.Second)
		r, err := e.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		task := h.wait(e, r.Task.ID)
		if task.Status != onereply.StatusFailed || task.Reason != onereply.ReasonDeadlineExceeded {
			t.Errorf("%s %s", task.Status, task.Reason)
		}
		if late := task.EndedAt.Sub(s.Deadline); late < 0 || late > 2*time.Second {
			t.Errorf("ended %v after its deadline", late)
		}
	})
}

func TestAPanicInWorkIsAFailureOfItsTaskAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "panics", Policy: onereply.Policy{MaxAttempts: 2}}
		k.Work = func(context.Context, onereply.Attempt, ask) (answer, error) { panic("boom") }
		good := echo()
		e := h.start(engine.Options{}, k, good)
		bad := h.submit(e, k, "k", "x")
		if task := h.wait(e, bad.ID); task.Status != onereply.StatusFailed || task.Reason != onereply.ReasonAttemptsExhausted {
			t.Errorf("%s %s", task.Status, task.Reason)
		}
		if task := h.wait(e, h.submit(e, good, "k2", "x").ID); task.Status != onereply.StatusCompleted {
			t.Errorf("the other task is %s", task.Status)
		}
	})
}
