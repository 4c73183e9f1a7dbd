package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Claim implements store.Writer.
func (s *Store) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if c.Limit < 1 || c.Lease < time.Millisecond || c.NewAttempt == nil {
		return store.Claimed{}, fmt.Errorf("%w: a claim needs a limit, a lease of at least 1ms and attempt ids", onereply.ErrInvalid)
	}
	var claimed store.Claimed
	err := s.shared(ctx, "Claim", normal, func(ctx context.Context, tx *Tx) error {
		q, err := s.in(ctx, tx)
		if err != nil {
			return err
		}
		claimed, err = q.claim(ctx, c)
		return err
	})
	if err != nil {
		return store.Claimed{}, fault("claim", err)
	}
	return claimed, nil
}

func (q *querier) claim(ctx context.Context, c store.Claim) (claimed store.Claimed, err error) {
	var found []taskRow
	if len(c.IDs) > 0 {
		found, err = q.named(ctx, c.IDs)
	} else {
		found, err = q.waiting(ctx, c)
	}
	if err != nil {
		return claimed, err
	}
	for _, t := range found {
		if len(claimed.Assignments) < c.Limit && slices.Contains(c.Kinds, t.Kind) {
			a, ok, err := q.assign(ctx, c, t)
			if err != nil {
				return claimed, err
			}
			if ok {
				claimed.Assignments = append(claimed.Assignments, a)
				continue
			}
		}
		if len(c.IDs) > 0 {
			claimed.Others = append(claimed.Others, t.Task)
		}
	}
	return claimed, nil
}

// named reads the tasks of a claim by id, each once.
func (q *querier) named(ctx context.Context, ids []onereply.TaskID) (found []taskRow, err error) {
	seen := make(map[onereply.TaskID]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		t, ok, err := q.task(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, t)
		}
	}
	return found, nil
}

// waiting finds the tasks that have waited longest: queued and due, or running
// with their lease over.
func (q *querier) waiting(ctx context.Context, c store.Claim) (found []taskRow, err error) {
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(c.Kinds))) {
		for _, search := range []string{"claim_expired", "claim_due"} {
			_, err := q.each(ctx, search, func(r row) error {
				found = append(found, scanTask(r))
				return nil
			}, "kind", kind, "now", q.now, "limit", c.Limit)
			if err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(found, func(a, b taskRow) int { return since(a).Compare(since(b)) })
	return found[:min(len(found), c.Limit)], nil
}

func since(t taskRow) time.Time {
	if t.Status == onereply.StatusRunning {
		return t.LeaseUntil
	}
	return t.RunAt
}

// assign claims one task; not ok: it is not due.
func (q *querier) assign(ctx context.Context, c store.Claim, t taskRow) (a store.Assignment, ok bool, err error) {
	now := moment(q.now)
	spent, isSpent := t.Budget.Spent(now)
	until, added := q.now+c.Lease.Milliseconds(), 0
	if !isSpent {
		added = 1
		if end := millis(t.Budget.End()); end != 0 {
			until = min(until, end)
		}
	}
	attempt := c.NewAttempt()
	n, err := q.exec(ctx, "claim", "task", t.ID, "attempt", attempt, "worker", c.Worker,
		"lease_until", until, "added", added, "now", q.now)
	if err != nil || n == 0 {
		return a, false, err
	}
	a.Took, a.Spent, a.LeaseFor = t.Status == onereply.StatusRunning, spent, span(until-q.now)
	if a.Took {
		if _, err := q.exec(ctx, "claim_close", "task", t.ID, "version", t.Version, "now", q.now); err != nil {
			return a, false, err
		}
	}
	t.Version, t.Attempt, t.Worker, t.Status = t.Version+1, attempt, c.Worker, onereply.StatusRunning
	t.LeaseUntil = moment(until)
	t.Budget.Attempts.Used += added
	if added == 1 {
		_, err := q.exec(ctx, "claim_attempt", "task", t.ID, "version", t.Version, "attempt", attempt, "worker", c.Worker, "now", q.now)
		if err != nil {
			return a, false, err
		}
	}
	return a, true, q.inherit(ctx, &a, t)
}

// inherit gives the assignment what the work needs: the input, and what earlier
// attempts left.
func (q *querier) inherit(ctx context.Context, a *store.Assignment, t taskRow) (err error) {
	a.Guard = onereply.Guard{Task: t.ID, Version: t.Version, Attempt: t.Attempt}
	if a.Input, err = q.input(ctx, t.ID); err != nil {
		return err
	}
	a.Task = t.Task
	a.Task.Input = a.Input
	if t.Version == 1 {
		return nil // nobody was here before
	}
	if _, err = q.exec(ctx, "claim_drafts", "task", t.ID, "version", t.Version); err != nil {
		return err
	}
	if _, err = q.each(ctx, "progress_read", func(r row) error { a.State = r.bytes(0); return nil }, "task", t.ID); err != nil {
		return err
	}
	if t.openCall == 0 {
		return nil
	}
	_, err = q.each(ctx, "call_open", func(r row) error {
		a.OpenCall = &onereply.OpenCall{Number: r.count(0), Attempt: onereply.AttemptID(r.text(1)), Operation: r.text(2)}
		return nil
	}, "task", t.ID, "number", t.openCall)
	return err
}
