package sqlite

import (
	"context"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Purge implements store.Keeper. A reader looks first, so that nothing is
// written, and no lock taken, when there is nothing to remove.
func (s *Store) Purge(ctx context.Context, p store.Purge) (purged store.Purged, err error) {
	if p.Limit < 1 {
		return purged, fmt.Errorf("%w: a purge needs a limit", onereply.ErrInvalid)
	}
	var keys, tasks bool
	err = s.snapshot(ctx, "purge", func(q *querier) error {
		if err := q.readClock(ctx); err != nil {
			return err
		}
		n, err := q.each(ctx, "purge_keys_find", func(row) error { return nil }, "now", q.now)
		if err != nil {
			return err
		}
		m, err := q.each(ctx, "purge_tasks_find", func(row) error { return nil }, "before", q.now-p.TaskRetention.Milliseconds())
		keys, tasks = n > 0, m > 0
		return err
	})
	if err != nil || (!keys && !tasks) {
		return purged, err
	}
	err = s.shared(ctx, "Purge", normal, func(ctx context.Context, tx *Tx) error {
		q, err := s.in(ctx, tx)
		if err != nil {
			return err
		}
		n, err := q.exec(ctx, "purge_keys", "now", q.now, "limit", p.Limit)
		if err != nil {
			return err
		}
		m, err := q.exec(ctx, "purge_tasks", "before", q.now-p.TaskRetention.Milliseconds(), "limit", p.Limit)
		purged = store.Purged{Keys: int(n), Tasks: int(m), More: int(n) == p.Limit || int(m) == p.Limit}
		return err
	})
	if err != nil {
		return store.Purged{}, fault("purge", err)
	}
	return purged, nil
}
