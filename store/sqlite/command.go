package sqlite

import (
	"context"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// anyScope names every scope in a command, and in a reader's question.
const anyScope = "*"

// Command implements store.Writer.
func (s *Store) Command(ctx context.Context, tx onereply.Tx, entries []store.Command) ([]store.Commanded, error) {
	q, err := s.in(ctx, tx)
	if err != nil {
		return nil, fault("command", err)
	}
	verdicts := make([]store.Commanded, len(entries))
	for i, e := range entries {
		if verdicts[i], err = q.command(ctx, e); err != nil {
			return nil, fault("command", err)
		}
	}
	return verdicts, nil
}

func (q *querier) command(ctx context.Context, e store.Command) (store.Commanded, error) {
	t, found, err := q.task(ctx, e.Task)
	if err != nil {
		return store.Commanded{}, err
	}
	if !found || (e.Scope != anyScope && e.Scope != t.Scope) {
		return store.Commanded{Verdict: store.Missing}, nil
	}
	c := store.Commanded{Task: t.Task}
	switch e.Op {
	case store.Cancel:
		err = q.cancel(ctx, &c)
	case store.Resume:
		err = q.resume(ctx, e, &c)
	default:
		err = fmt.Errorf("%w: command op %d", onereply.ErrInvalid, e.Op)
	}
	if err != nil {
		return store.Commanded{}, err
	}
	return c, q.fill(ctx, &c.Task)
}

func (q *querier) cancel(ctx context.Context, c *store.Commanded) error {
	t, done, err := q.oneTask(ctx, "cancel", "task", c.Task.ID, "now", q.now)
	if err != nil {
		return err
	}
	if !done {
		c.Verdict = store.HasEnded
		if c.Task.Status == onereply.StatusCancelled {
			c.Verdict = store.AlreadyDone
		}
		return nil
	}
	c.Verdict, c.Task = store.Done, t.Task
	if _, err := q.exec(ctx, "end_attempts", "task", t.ID, "outcome", onereply.OutcomeCancelled, "now", q.now); err != nil {
		return err
	}
	for _, name := range []string{"end_progress", "end_drafts"} {
		if _, err := q.exec(ctx, name, "task", t.ID); err != nil {
			return err
		}
	}
	if err := q.endCalls(ctx, store.Ending{}, t); err != nil {
		return err
	}
	return q.event(ctx, event{task: t.ID, kind: onereply.EventCancelled, version: t.Version, attempt: t.Attempt})
}

func (q *querier) resume(ctx context.Context, e store.Command, c *store.Commanded) error {
	before := c.Task
	if before.Status != onereply.StatusFailed {
		c.Verdict = store.NotFailed
		return nil
	}
	deadline := millis(before.Budget.Deadline)
	if !e.Deadline.IsZero() {
		deadline = millis(e.Deadline)
	}
	if deadline != 0 && deadline <= q.now {
		c.Verdict = store.DeadlinePassed
		return nil
	}
	// The failure's columns are about to be cleared: from here on it is history.
	failed := event{task: before.ID, kind: onereply.EventFailed, version: before.Version, attempt: before.Attempt, worker: before.Worker, code: string(before.Reason)}
	if before.Error != nil {
		failed.detail = before.Error.Message
	}
	past := *q
	past.now = millis(before.EndedAt)
	if err := past.event(ctx, failed); err != nil {
		return err
	}
	t, done, err := q.oneTask(ctx, "resume", "task", before.ID, "now", q.now,
		"attempts", e.Attempts, "calls", e.Calls, "deadline", millis(e.Deadline))
	if err != nil {
		return err
	}
	if !done {
		return fmt.Errorf("resume of task %s changed nothing although it has failed", before.ID)
	}
	c.Verdict, c.Task = store.Done, t.Task
	_, err = q.exec(ctx, "resume_key", "task", t.ID, "scope", t.Scope, "expires", q.now+e.KeyRetention.Milliseconds())
	if err != nil {
		return err
	}
	return q.event(ctx, event{task: t.ID, kind: onereply.EventResumed, version: t.Version})
}
