package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/sqlite"
)

// TestAHostClockThatStepsLosesNothing steps the clock that the store reads while
// tasks run. Backwards nothing may stand still: time runs on from the mark. A
// step forward may take a running task over early, which the fence makes safe:
// one response, and what was counted stays counted.
func TestAHostClockThatStepsLosesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{-6 * time.Hour, -time.Second, time.Second, 6 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			var offset atomic.Int64
			o := sqlite.Options{Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }}
			bubbleWith(t, o, func(t *testing.T, h *house) {
				k := &kind{Name: "slow", Policy: onereply.Policy{MaxElapsed: 24 * time.Hour, MaxAttempts: 9, MaxCalls: 9}}
				k.Work = func(ctx context.Context, a onereply.Attempt, in ask) (answer, error) {
					return answer(in), a.Call(ctx, func(ctx context.Context, _ onereply.Call) error {
						select {
						case <-time.After(time.Minute):
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					})
				}
				e := h.start(engine.Options{}, k)
				var ids []onereply.TaskID
				for i := range 5 {
					ids = append(ids, h.submit(e, k, fmt.Sprint(i), "x").ID)
				}
				<-time.After(20 * time.Second)
				offset.Store(int64(step))
				ids = append(ids, h.submit(e, k, "after", "x").ID)
				began := time.Now()
				for _, id := range ids {
					task := h.wait(e, id)
					if task.Status != onereply.StatusCompleted {
						t.Errorf("%s ended as %s %s", id, task.Status, task.Reason)
					}
					if step < 0 && task.Budget.Calls.Used != 1 {
						t.Errorf("a step back cost %d calls", task.Budget.Calls.Used)
					}
					if task.EndedAt.Before(task.CreatedAt) {
						t.Errorf("%s ended before it was created", id)
					}
				}
				if took := time.Since(began); took > 3*time.Minute {
					t.Errorf("the tasks took %v after the step", took)
				}
			})
		})
	}
}
