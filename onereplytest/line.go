package onereplytest

import (
	"context"
	"errors"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// line is the way from a process to the database. It is cut when the process is
// killed, and still while it is frozen.
type line struct {
	p     *Process
	store store.Store
}

var errRolledBack = errors.New("planted: rolled back")

func (l *line) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	if err := l.p.at(ctx, Accepting); err != nil {
		return err
	}
	if l.p.take(&l.p.rollBacks) {
		err := l.store.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
			if err := f(ctx, tx); err != nil {
				return err
			}
			return errRolledBack
		})
		if errors.Is(err, errRolledBack) {
			return fmt.Errorf("%w: %w", onereply.ErrUnavailable, err)
		}
		return err
	}
	if err := l.store.InTx(ctx, f); err != nil {
		return err
	}
	if err := l.p.at(ctx, Accepted); err != nil {
		return err
	}
	if l.p.take(&l.p.lost) {
		return fmt.Errorf("%w: %w: planted: the answer was lost", onereply.ErrCommitUnknown, onereply.ErrUnavailable)
	}
	return nil
}

// Submit, Finish and Command run inside a transaction that has passed already.

func (l *line) Submit(ctx context.Context, tx onereply.Tx, entries []store.Submission) ([]store.Submitted, error) {
	return l.store.Submit(ctx, tx, entries)
}

func (l *line) Finish(ctx context.Context, tx onereply.Tx, entries []store.Ending) ([]store.Verdict, error) {
	return l.store.Finish(ctx, tx, entries)
}

func (l *line) Command(ctx context.Context, tx onereply.Tx, entries []store.Command) ([]store.Commanded, error) {
	return l.store.Command(ctx, tx, entries)
}

func (l *line) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	return through(l, func() (store.Claimed, error) { return l.store.Claim(ctx, c) })
}

func (l *line) Record(ctx context.Context, entries []store.Record) ([]store.Verdict, error) {
	return through(l, func() ([]store.Verdict, error) { return l.store.Record(ctx, entries) })
}

func (l *line) Tasks(ctx context.Context, q store.Query) ([]onereply.Task, error) {
	return through(l, func() ([]onereply.Task, error) { return l.store.Tasks(ctx, q) })
}

func (l *line) Timeline(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error) {
	return through(l, func() ([]onereply.Event, error) { return l.store.Timeline(ctx, scope, id) })
}

func (l *line) Drafts(ctx context.Context, positions []store.Position) ([]store.Draft, error) {
	return through(l, func() ([]store.Draft, error) { return l.store.Drafts(ctx, positions) })
}

func (l *line) Due(ctx context.Context, kinds []string) (store.Due, error) {
	return through(l, func() (store.Due, error) { return l.store.Due(ctx, kinds) })
}

func (l *line) Stats(ctx context.Context) (store.Stats, error) {
	return through(l, func() (store.Stats, error) { return l.store.Stats(ctx) })
}

func (l *line) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	return through(l, func() (store.Purged, error) { return l.store.Purge(ctx, p) })
}

// Watch passes hints on only while the process lives: a killed one is told
// nothing, and ends with its context.
func (l *line) Watch(ctx context.Context, hint func()) error {
	return l.store.Watch(ctx, func() {
		if !l.p.killed() {
			hint()
		}
	})
}

// through makes a call of the store, if and once the process may. What a
// process that froze meanwhile was answered reaches it when it thaws.
func through[T any](l *line, call func() (T, error)) (T, error) {
	var none T
	if err := l.p.pass(); err != nil {
		return none, err
	}
	v, err := call()
	if gone := l.p.pass(); gone != nil {
		return none, gone
	}
	return v, err
}
