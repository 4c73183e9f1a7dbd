package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onereply/onereply"
)

// attempts is how often a transaction that the server asks to repeat is run.
const attempts = 4

// insideKey marks the context of a function that InTx of this store is running.
type insideKey struct{ *Store }

// outside refuses what must not be called inside InTx: it would take a second
// connection while it holds one, and wait for its own locks.
func (s *Store) outside(ctx context.Context, op string) error {
	if ctx.Value(insideKey{s}) == nil {
		return nil
	}
	return fmt.Errorf("%w: %s inside a transaction of the same store", onereply.ErrInvalid, op)
}

// InTx implements store.Writer. A transaction that met a deadlock is run again
// as a whole, so f may be called more than once.
func (s *Store) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	if err := s.outside(ctx, "InTx"); err != nil {
		return err
	}
	var own error
	inside := context.WithValue(ctx, insideKey{s}, true)
	err := s.transact(ctx, s.settings, func(tx *Tx) error {
		own = f(inside, tx)
		return own
	})
	if err == nil || errors.Is(err, onereply.ErrCommitUnknown) {
		s.announce(ctx, true)
	}
	if own != nil && err == own { //nolint:errorlint // as it is, not wrapped
		return own
	}
	return fault("transaction", err)
}

// transact runs f in a transaction, and again as a whole where the server asks
// for it.
func (s *Store) transact(ctx context.Context, settings string, f func(*Tx) error) (err error) {
	for range attempts {
		err = s.db.inTx(ctx, settings, func(tx *Tx) error {
			if err := f(tx); err != nil {
				return err
			}
			if s.o.Faults != nil && s.o.Faults.BeforeCommit != nil {
				return s.o.Faults.BeforeCommit()
			}
			return nil
		})
		if !mayRetry(err) {
			break
		}
	}
	if err != nil {
		return err
	}
	return s.acknowledged(ctx)
}

// alone runs one statement that is a transaction by itself. Where it may have
// been carried out although nobody heard so, the error says that (P11).
func (s *Store) alone(ctx context.Context, f func(runner) error) (err error) {
	lax, err := s.readsCommitted(ctx)
	if err != nil {
		return err
	}
	if !lax || s.o.Faults != nil && s.o.Faults.BeforeCommit != nil {
		return s.transact(ctx, s.settings, func(tx *Tx) error { return f(tx) })
	}
	for range attempts {
		if err = f(s.db); !mayRetry(err) {
			break
		}
	}
	if err != nil {
		return committed(ctx, err)
	}
	return s.acknowledged(ctx)
}

// readsCommitted reports whether a statement by itself runs at READ COMMITTED, as
// every statement here is written for; a database or role may have another
// default, and then each gets a transaction that says so. It asks once.
func (s *Store) readsCommitted(ctx context.Context) (bool, error) {
	if known := s.isolation.Load(); known != nil {
		return *known == "read committed", nil
	}
	var level string
	if err := s.do(ctx, s.db, "isolation", func(scan func(...any) error) error { return scan(&level) }); err != nil {
		return false, err
	}
	s.isolation.Store(&level)
	return level == "read committed", nil
}

// acknowledged is where a test loses the answer to a commit.
func (s *Store) acknowledged(ctx context.Context) error {
	if s.o.Faults != nil && s.o.Faults.AfterCommit != nil {
		if lost := s.o.Faults.AfterCommit(); lost != nil {
			return committed(ctx, lost)
		}
	}
	return nil
}

// committed tells a commit that certainly did not happen from one that may have
// (P11). Certain are the server's own refusal, unless it was ending the
// connection, and a request that never left this process.
func committed(ctx context.Context, err error) error {
	code, spoke := state(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, onereply.ErrInvalid), neverSent(err), isClosed(err):
		return err
	case spoke && code[:2] != "57" && code[:2] != "08":
		return err
	case spoke && code == "57014": // a statement that was cancelled was undone
		return err
	case refusedToConnect(err):
		return err
	}
	return &onereply.Error{
		Op:   "commit",
		Err:  fmt.Errorf("%w: %w: %w", onereply.ErrCommitUnknown, onereply.ErrUnavailable, errors.Join(err, ctx.Err())),
		Hint: "read the task before doing anything again",
	}
}

// neverSent reports whether pgx knows that nothing left this process. "conn
// closed" is not believed: when the line breaks while an answer is waited for,
// pgx drops the first error and reports this one, as safe to retry.
func neverSent(err error) bool {
	return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}
