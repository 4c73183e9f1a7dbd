package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/postgres"
)

// Whatever the database's default, the engine's transactions run at READ
// COMMITTED: they wait for a row and then see what it became.
func TestAStricterDefaultIsolationChangesNothing(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable%20read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "&default_transaction_isolation="+level, postgres.Options{LockTimeout: 30 * time.Second})
			var inside string
			s.must(s.store.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
				return postgres.Unwrap(tx).QueryRow(ctx, "SHOW transaction_isolation").Scan(&inside)
			}))
			if inside != "read committed" {
				t.Errorf("a transaction of the store runs at %s", inside)
			}
			// Each waits for somebody's lock on the row, whose version changes under it.
			for _, w := range writes() {
				a := s.running(time.Hour)
				tx := s.holding("UPDATE "+s.schema+".tasks SET worker = 'touched' WHERE id = $1", string(a.Task.ID))
				done := make(chan error)
				go func() {
					v, err := w.do(s, a.Guard)
					if err == nil && v.Refused != nil {
						err = v.Refused
					}
					done <- err
				}()
				s.untilBlocked(1)
				s.must(tx.Commit(t.Context()))
				if err := <-done; err != nil {
					t.Errorf("%s: %v", w.name, err)
				}
			}
			claimStorm(s)
		})
	}
}

// claimStorm has many claim the same tasks at once: each is handed out once and
// nobody sees a serialization failure.
func claimStorm(s *site) {
	s.Helper()
	var entries []store.Submission
	for range 40 {
		entries = append(entries, s.submission(s.ids.New()))
	}
	_, err := s.submit(entries...)
	s.must(err)
	got, errs := make([]int, 8), make([]error, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for {
				c, err := s.store.Claim(s.Context(), store.Claim{Worker: "w", Lease: time.Hour, Kinds: []string{"reply"}, Limit: 3, NewAttempt: s.ids.NewAttempt})
				if errs[i] = err; err != nil || len(c.Assignments) == 0 {
					return
				}
				got[i] += len(c.Assignments)
			}
		})
	}
	wg.Wait()
	s.must(errors.Join(errs...))
	total := 0
	for _, n := range got {
		total += n
	}
	var queued int
	s.scan(&queued, "SELECT count(*) FROM "+s.schema+".tasks WHERE status = 'queued' AND run_at <= clock_timestamp()")
	if queued > 0 || total < 40 {
		s.Errorf("%d handed out, %d left", total, queued)
	}
}
