package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/postgres"
)

func TestCommandsThatNameTasksInOppositeOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	var before, after int
	s.scan(&before, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
	for range 10 {
		var commands []store.Command
		for range 12 {
			commands = append(commands, store.Command{Op: store.Cancel, Scope: "w", Task: s.running(time.Minute).Task.ID})
		}
		backwards := slices.Clone(commands)
		slices.Reverse(backwards)
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				mine := commands
				if i%2 == 1 {
					mine = backwards
				}
				runs := 0
				errs[i] = s.store.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
					if runs++; runs > 1 {
						return errors.New("the transaction had to be run again")
					}
					_, err := s.store.Command(ctx, tx, mine)
					return err
				})
			})
		}
		wg.Wait()
		s.must(errors.Join(errs...))
	}
	s.scan(&after, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
	t.Logf("deadlocks on the whole server: %d before, %d after", before, after)
}

func TestADeadlockIsRunAgainAsAWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{LockTimeout: 30 * time.Second})
	s.exec("CREATE TABLE " + s.schema + ".app (id int PRIMARY KEY, n int NOT NULL)")
	s.exec("INSERT INTO " + s.schema + ".app VALUES (1, 0), (2, 0)")
	var runs atomic.Int32
	var both sync.WaitGroup
	both.Add(2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			first := true
			errs[i] = s.store.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
				runs.Add(1)
				for step, id := range []int{1 + i, 2 - i} {
					if _, err := postgres.Unwrap(tx).Exec(ctx, "UPDATE "+s.schema+".app SET n = n + 1 WHERE id = $1", id); err != nil {
						return err
					}
					if step == 0 && first {
						first = false
						both.Done()
						both.Wait() // each holds one row and wants the other's
					}
				}
				return nil
			})
		})
	}
	wg.Wait()
	s.must(errors.Join(errs...))
	var n int
	s.scan(&n, "SELECT sum(n) FROM "+s.schema+".app")
	if n != 4 || runs.Load() < 3 {
		t.Errorf("%d updates stand after %d runs, want 4 after 3 or more", n, runs.Load())
	}
}
