package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
)

// A call that can be looked up is left to Work, which may look or not; what it
// may not do under stop is to call again beside it.
func TestUnderStopNoCallFollowsAnOperationThatNobodyLookedUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		frozen, thaw := make(chan struct{}), make(chan struct{})
		sent := 0
		k := &kind{Name: "k", Policy: onereply.Policy{OnUnknown: onereply.UnknownStop, CallTimeout: time.Second}}
		k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			return answer{Text: "x"}, a.Call(ctx, func(ctx context.Context, call onereply.Call) error {
				if sent++; sent > 1 {
					return nil
				}
				if err := call.Checkpoint(ctx, "operation-1"); err != nil {
					return err
				}
				close(frozen)
				<-thaw // it ignores its context, as a stopped process does
				return nil
			})
		}
		first := h.start(engine.Options{Workers: 1}, k)
		task := h.submit(first, k, "k", "x")
		<-frozen
		ended := h.wait(h.start(engine.Options{}, k), task.ID)
		close(thaw)
		if ended.Status != onereply.StatusFailed || ended.Reason != onereply.ReasonOutcomeUnknown || ended.Budget.Calls.Used != 1 || sent != 1 {
			t.Errorf("%s %q, %d calls counted, %d sent; want failed for an unknown outcome after one", ended.Status, ended.Reason, ended.Budget.Calls.Used, sent)
		}
	})
}

func TestACallUnderAnotherContextEndsWithItsAssignment(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		started, cause := make(chan struct{}), make(chan error, 1)
		k := &kind{Name: "k"}
		k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
			return answer{}, a.Call(context.WithoutCancel(ctx), func(ctx context.Context, _ onereply.Call) error {
				close(started)
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return context.Cause(ctx)
			})
		}
		e := h.start(engine.Options{}, k)
		task := h.submit(e, k, "k", "x")
		<-started
		if _, err := e.Cancel(t.Context(), "w", task.ID); err != nil {
			t.Fatal(err)
		}
		if got := <-cause; !errors.Is(got, onereply.ErrCancelled) {
			t.Errorf("the call ended with %v, want %v", got, onereply.ErrCancelled)
		}
	})
}

// What a lookup can still tell is looked up by the next attempt, though no call
// is left; what it cannot is closed, and no attempt looks for it again.
func TestAnUnknownOutcomeStaysOpenWhileALookupCanTell(t *testing.T) {
	t.Parallel()
	for name, final := range map[string]bool{"final": true, "not final": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, h *house) {
				calls := 2
				if !final {
					calls = 1
				}
				k := &kind{Name: "k", Policy: onereply.Policy{MaxCalls: calls}}
				var open []bool
				k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (answer, error) {
					found := a.Assignment().OpenCall
					open = append(open, found != nil)
					if found != nil {
						return answer{Text: "found"}, a.Resolve(ctx, onereply.Resolution{Class: onereply.ClassAnswered, Usage: onereply.Usage{OutputTokens: 7}})
					}
					return answer{Text: "called"}, a.Call(ctx, func(ctx context.Context, c onereply.Call) error {
						if len(open) > 1 {
							return nil
						}
						if err := c.Checkpoint(ctx, "operation-1"); err != nil {
							return err
						}
						return &onereply.CallError{Class: onereply.ClassUnknown, Code: onereply.CodeProviderUnavailable, Final: final}
					})
				}
				e := h.start(engine.Options{Workers: 1}, k)
				ended := h.wait(e, h.submit(e, k, "k", "x").ID)
				if ended.Status != onereply.StatusCompleted || ended.Budget.Calls.Used != calls || len(open) != 2 || open[1] == final {
					t.Errorf("%s %q, %d calls, open calls met: %v", ended.Status, ended.Reason, ended.Budget.Calls.Used, open)
				}
			})
		})
	}
}
