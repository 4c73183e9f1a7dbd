package sqlite

import (
	"context"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Finish implements store.Writer.
func (s *Store) Finish(ctx context.Context, tx onereply.Tx, entries []store.Ending) ([]store.Verdict, error) {
	q, err := s.in(ctx, tx)
	if err != nil {
		return nil, fault("finish", err)
	}
	verdicts := make([]store.Verdict, len(entries))
	for i, e := range entries {
		if verdicts[i], err = q.finish(ctx, e); err != nil {
			return nil, fault("finish", err)
		}
	}
	return verdicts, nil
}

// finish ends one assignment, or says why not.
func (q *querier) finish(ctx context.Context, e store.Ending) (v store.Verdict, err error) {
	if e.Closed != nil && putsBack(e.Op) {
		// Before it is put back, so that what stays open is known under the guard.
		if _, err := q.close(ctx, e.Guard, e.Closed); err != nil {
			return v, err
		}
	}
	t, done, err := q.ending(ctx, e)
	if err != nil {
		return v, err
	}
	if !done {
		if v.Refused, v.Task, err = q.refusal(ctx, e.Guard, e.Closed); err != nil {
			return v, err
		}
		return v, q.finishAttempt(ctx, e.Guard, onereply.OutcomeFencedOut, e.Failure)
	}
	if err := q.after(ctx, e, t); err != nil {
		return v, err
	}
	if t.Input, err = q.input(ctx, t.ID); err != nil {
		return v, err
	}
	if e.Op == store.Accept {
		t.Response = e.Response
	}
	v.Task = &t.Task
	return v, nil
}

// putsBack reports whether the task goes on after the ending: then a call that is
// open stays open, for whoever claims it to recover or to treat as unknown (P10).
func putsBack(op store.EndingOp) bool { return op == store.Retry || op == store.Release }

// ending runs the guarded statement of an ending.
func (q *querier) ending(ctx context.Context, e store.Ending) (t taskRow, done bool, err error) {
	args := []any{"task", e.Guard.Task, "version", e.Guard.Version, "attempt", e.Guard.Attempt, "now", q.now}
	var f onereply.Failure
	if e.Failure != nil {
		f = *e.Failure
	}
	failed := append(args, "failed", e.Failure != nil, "error_code", f.Code, "error_message", f.Message)
	switch e.Op {
	case store.Accept:
		if t, done, err = q.oneTask(ctx, "accept", args...); err != nil || done {
			return t, done, err
		}
		return q.oneTask(ctx, "accept_first_valid", args...)
	case store.Fail:
		return q.oneTask(ctx, "fail", append(failed, "reason", e.Reason)...)
	case store.Retry:
		return q.oneTask(ctx, "retry", append(failed, "run_at", q.now+e.Delay.Milliseconds())...)
	case store.Release:
		return q.oneTask(ctx, "release", failed...)
	}
	return t, false, fmt.Errorf("%w: ending op %d", onereply.ErrInvalid, e.Op)
}

// after writes what goes with an ending that took hold: the slot, the attempt,
// the calls, the draft, the event.
func (q *querier) after(ctx context.Context, e store.Ending, t taskRow) error {
	if e.Closed != nil && !putsBack(e.Op) {
		if err := q.closeCall(ctx, t.ID, e.Closed); err != nil {
			return err
		}
	}
	steps := []func(context.Context, store.Ending, taskRow) error{q.endCalls}
	switch e.Op {
	case store.Accept:
		steps = append(steps, q.fillSlot, q.endWork)
	case store.Fail:
		steps = append(steps, q.endAttempt, q.endDrafts)
	case store.Retry:
		steps = []func(context.Context, store.Ending, taskRow) error{q.endAttempt, q.putBack(onereply.EventRetried)}
	case store.Release:
		steps = []func(context.Context, store.Ending, taskRow) error{q.endAttempt, q.putBack(onereply.EventReleased)}
	}
	for _, step := range steps {
		if err := step(ctx, e, t); err != nil {
			return err
		}
	}
	return nil
}

func (q *querier) endCalls(ctx context.Context, _ store.Ending, t taskRow) error {
	if t.Budget.Calls.Used == 0 {
		return nil
	}
	_, err := q.exec(ctx, "end_calls", "task", t.ID, "now", q.now)
	return err
}

func (q *querier) endAttempt(ctx context.Context, e store.Ending, _ taskRow) error {
	return q.finishAttempt(ctx, e.Guard, e.Outcome, e.Failure)
}

func (q *querier) endDrafts(ctx context.Context, _ store.Ending, t taskRow) error {
	_, err := q.exec(ctx, "end_drafts", "task", t.ID)
	return err
}

// fillSlot fills the response slot. Its primary key refuses a second one.
func (q *querier) fillSlot(ctx context.Context, e store.Ending, t taskRow) error {
	_, err := q.exec(ctx, "accept_response", "task", t.ID, "version", e.Guard.Version, "attempt", e.Guard.Attempt,
		"response", string(e.Response), "now", q.now)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, "accept_attempt", "task", t.ID, "version", e.Guard.Version, "attempt", e.Guard.Attempt, "now", q.now)
	return err
}

// endWork removes what only a running task needs. An attempt that is still
// under way, which first-valid allows, is fenced out.
func (q *querier) endWork(ctx context.Context, e store.Ending, t taskRow) error {
	if t.Version > 1 {
		if _, err := q.exec(ctx, "end_attempts", "task", t.ID, "outcome", onereply.OutcomeFencedOut, "now", q.now); err != nil {
			return err
		}
	}
	if _, err := q.exec(ctx, "end_progress", "task", t.ID); err != nil {
		return err
	}
	return q.endDrafts(ctx, e, t)
}

func (q *querier) putBack(kind onereply.EventType) func(context.Context, store.Ending, taskRow) error {
	return func(ctx context.Context, e store.Ending, t taskRow) error {
		put := event{task: t.ID, kind: kind, version: e.Guard.Version, attempt: e.Guard.Attempt, worker: t.Worker, code: string(e.Outcome)}
		if e.Failure != nil {
			put.code, put.detail = e.Failure.Code, e.Failure.Message
		}
		return q.event(ctx, put)
	}
}
