package postgres

import (
	"context"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// alongIndexes lets a purge walk its indexes from the oldest entry on. Without
// statistics the planner would take a third of a table to be past its retention,
// and read all of it.
const alongIndexes = "; set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off"

// Purge implements store.Keeper. It looks first, so that nothing is written, and
// no lock taken, when there is nothing to remove.
func (s *Store) Purge(ctx context.Context, p store.Purge) (purged store.Purged, err error) {
	if p.Limit < 1 {
		return purged, fmt.Errorf("%w: a purge needs a limit", onereply.ErrInvalid)
	}
	var keys, tasks bool
	err = s.do(ctx, s.db, "purge_find", func(scan func(...any) error) error { return scan(&keys, &tasks) }, p.TaskRetention)
	if err != nil || !keys && !tasks {
		return purged, fault("purge", err)
	}
	err = s.transact(ctx, s.settings+alongIndexes, func(t *Tx) error {
		err := s.do(ctx, t, "purge_keys", func(scan func(...any) error) error { return scan(&purged.Keys) }, p.Limit)
		if err != nil {
			return err
		}
		return s.do(ctx, t, "purge_tasks", func(scan func(...any) error) error { return scan(&purged.Tasks) }, p.TaskRetention, p.Limit)
	})
	if err != nil {
		return store.Purged{}, fault("purge", err)
	}
	purged.More = purged.Keys == p.Limit || purged.Tasks == p.Limit
	return purged, nil
}
