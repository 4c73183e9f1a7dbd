package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/onereply/onereply"
)

// watchers are told of the commits of this process at once; those of other
// processes are seen by polling the file's data version.
type watchers struct {
	mu     sync.Mutex
	closed chan struct{}
	wake   map[chan struct{}]bool
	live   sync.WaitGroup
}

// add registers a watcher; nil: the store is closed.
func (w *watchers) add() (wake chan struct{}, closed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wake == nil {
		w.wake, w.closed = map[chan struct{}]bool{}, make(chan struct{})
	}
	select {
	case <-w.closed:
		return nil, nil
	default:
	}
	wake = make(chan struct{}, 1)
	w.wake[wake] = true
	w.live.Add(1)
	return wake, w.closed
}

func (w *watchers) remove(wake chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wake, wake)
	w.live.Done()
}

// close ends every watch and waits for them.
func (w *watchers) close() {
	w.mu.Lock()
	if w.wake == nil {
		w.wake, w.closed = map[chan struct{}]bool{}, make(chan struct{})
	}
	close(w.closed)
	w.mu.Unlock()
	w.live.Wait()
}

// announce wakes the watchers of this process, coalesced.
func (s *Store) announce() {
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	for wake := range s.watchers.wake {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// Watch implements store.Reader. It reads one integer from the file's shared
// memory every [Options.WatchInterval] and writes nothing.
func (s *Store) Watch(ctx context.Context, hint func()) error {
	wake, closed := s.watchers.add()
	if wake == nil {
		return &onereply.Error{Op: "watch", Err: onereply.ErrClosed}
	}
	defer s.watchers.remove(wake)
	conn, err := s.watches.Conn(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	// Prepared, because parsing it again each time is most of what it costs.
	version, err := conn.PrepareContext(ctx, "PRAGMA data_version")
	if err != nil {
		return errors.Join(ended(ctx, err), conn.Close())
	}
	err = s.look(ctx, version, wake, closed, hint)
	return errors.Join(err, version.Close(), conn.Close()) // in this order: a statement needs its connection
}

// look hints at every commit until the watch ends.
func (s *Store) look(ctx context.Context, version *sql.Stmt, wake, closed <-chan struct{}, hint func()) error {
	last, err := dataVersion(ctx, version)
	for err == nil {
		timer := time.NewTimer(s.options.WatchInterval)
		hinted := false
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-closed:
			timer.Stop()
			return &onereply.Error{Op: "watch", Err: onereply.ErrClosed}
		case <-wake:
			timer.Stop()
			hinted = true
		case <-timer.C:
		}
		var now int64
		if now, err = dataVersion(ctx, version); err == nil && (hinted || now != last) {
			last = now
			hint()
		}
	}
	return ended(ctx, err)
}

// ended is nil where the watch was ended by its caller.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // its caller knows that it ended
	}
	return fault("watch", err)
}

// dataVersion changes when another connection has committed.
func dataVersion(ctx context.Context, st *sql.Stmt) (version int64, err error) {
	err = st.QueryRowContext(ctx).Scan(&version)
	return version, err
}
