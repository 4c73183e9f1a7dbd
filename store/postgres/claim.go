package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Claim implements store.Writer, in one statement and one round trip.
func (s *Store) Claim(ctx context.Context, c store.Claim) (claimed store.Claimed, err error) {
	if err := s.outside(ctx, "Claim"); err != nil {
		return claimed, err
	}
	if c.Limit < 1 || c.Lease < time.Millisecond || c.NewAttempt == nil {
		return claimed, fmt.Errorf("%w: a claim needs a limit, a lease of at least 1ms and attempt ids", onereply.ErrInvalid)
	}
	kinds := slices.Compact(slices.Sorted(slices.Values(c.Kinds)))
	wanted := slices.Compact(slices.Sorted(slices.Values(c.IDs)))
	limit := c.Limit
	if len(wanted) > 0 {
		limit = min(limit, len(wanted))
	}
	fresh := make([]string, limit)
	for i := range fresh {
		fresh[i] = string(c.NewAttempt())
	}
	take := func(scan func(...any) error) error {
		a, err := scanAssignment(scan)
		if err == nil {
			claimed.Assignments = append(claimed.Assignments, a)
		}
		return err
	}
	err = s.alone(ctx, func(r runner) error {
		claimed = store.Claimed{}
		if len(wanted) > 0 {
			return s.do(ctx, r, "claim_ids", take, fresh, c.Worker, c.Lease, kinds, ids(wanted))
		}
		return s.do(ctx, r, "claim", take, fresh, c.Worker, c.Lease, kinds)
	})
	if len(claimed.Assignments) > 0 {
		s.announce(ctx, true)
	}
	if err != nil {
		return store.Claimed{}, fault("claim", err)
	}
	if len(claimed.Assignments) < len(wanted) {
		claimed.Others, err = s.others(ctx, c.IDs, claimed.Assignments)
	}
	return claimed, err
}

func scanAssignment(scan func(...any) error) (a store.Assignment, err error) {
	var r taskRow
	var spent, took bool
	var now time.Time
	var input string
	var state []byte
	var number sql.NullInt64
	var openAttempt, operation sql.NullString
	err = scan(append(r.columns(), &spent, &took, &now, &input, &state, &number, &openAttempt, &operation)...)
	if err != nil {
		return a, err
	}
	a.Task, a.Input, a.Took = r.task(), []byte(input), took
	a.Task.Input = a.Input
	a.Guard = onereply.Guard{Task: a.Task.ID, Version: a.Task.Version, Attempt: a.Task.Attempt}
	a.LeaseFor = a.Task.LeaseUntil.Sub(now)
	if state != nil {
		a.State = state
	}
	if number.Valid {
		a.OpenCall = &onereply.OpenCall{
			Number: int(number.Int64), Attempt: onereply.AttemptID(openAttempt.String), Operation: operation.String,
		}
	}
	if spent {
		a.Spent, _ = a.Task.Budget.Spent(now)
	}
	return a, nil
}

// others are the tasks asked for that were not handed out, as they stand.
func (s *Store) others(ctx context.Context, wanted []onereply.TaskID, got []store.Assignment) ([]onereply.Task, error) {
	var rest []onereply.TaskID
	for _, id := range wanted {
		mine := slices.ContainsFunc(got, func(a store.Assignment) bool { return a.Guard.Task == id })
		if !mine && !slices.Contains(rest, id) {
			rest = append(rest, id)
		}
	}
	return s.Tasks(ctx, store.Query{IDs: rest})
}
