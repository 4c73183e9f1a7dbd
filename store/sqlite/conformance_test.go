package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/storetest"
)

// handClock is the host's clock in a test's hand: it stands still until moved.
type handClock struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
}

func newHandClock() *handClock {
	return &handClock{wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *handClock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

// Advance lets time pass.
func (c *handClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed = c.wall.Add(d), c.elapsed+d
}

// Step sets the wall clock without time passing, as an operator or NTP does.
func (c *handClock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	o.Migrate = true
	s, err := sqlite.Open(context.WithoutCancel(t.Context()), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing %s: %v", path, err)
		}
	})
	return s
}

var errLost = errors.New("the line went dead")

func fixture(t testing.TB) storetest.Fixture {
	t.Helper()
	clock := newHandClock()
	var lose atomic.Bool
	o := sqlite.Options{
		Now: clock.Now, Elapsed: clock.Elapsed,
		Faults: &sqlite.Faults{AfterCommit: func() error {
			if lose.Swap(false) {
				return errLost
			}
			return nil
		}},
	}
	path := filepath.Join(t.TempDir(), "test.db")
	s := open(t, path, o)
	o.Faults = nil
	second := open(t, path, o)
	if err := s.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
		_, err := sqlite.Unwrap(tx).ExecContext(ctx, "CREATE TABLE app_rows (name TEXT NOT NULL)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return storetest.Fixture{
		Store: s, Second: second, Now: clock.Now, Advance: clock.Advance,
		LoseNextCommitAck: func() { lose.Store(true) },
		AddRow: func(ctx context.Context, tx onereply.Tx, name string) error {
			_, err := sqlite.Unwrap(tx).ExecContext(ctx, "INSERT INTO app_rows (name) VALUES (?)", name)
			return err
		},
		Rows: func(ctx context.Context) (n int, err error) {
			err = s.Reader().QueryRowContext(ctx, "SELECT count(*) FROM app_rows").Scan(&n)
			return n, err
		},
	}
}

func TestStoreConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, fixture)
}
