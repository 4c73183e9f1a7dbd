package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onereply/onereply"
)

// Watch implements store.Reader: it listens on one connection of the pool, and
// reconnects. A store on database/sql, or behind a pooler that does not keep
// sessions, hears nothing; then polling, which is the truth anyway, finds
// everything within its interval.
func (s *Store) Watch(ctx context.Context, hint func()) error {
	if s.pool == nil {
		<-ctx.Done()
		return nil
	}
	err := s.listen(ctx, hint)
	if ctx.Err() != nil {
		return nil
	}
	return fault("watch", err)
}

func (s *Store) listen(ctx context.Context, hint func()) (err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// A connection that has listened never serves anyone else.
	owned := conn.Hijack()
	defer func() { err = errors.Join(err, closing(owned)) }()
	if _, err := owned.Exec(ctx, "listen "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return err
	}
	hint() // what was committed before we listened
	for {
		if _, err := owned.WaitForNotification(ctx); err != nil {
			return err
		}
		hint()
	}
}

func closing(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return rolledBack(conn.Close(ctx))
}

func (s *Store) channel() string { return s.o.Schema + "_changed" }

// Notify sends the hint that listens in every process wait for. Call it after a
// commit, never inside a submission: a NOTIFY in a transaction makes commits
// wait for each other.
func (s *Store) Notify(ctx context.Context) error {
	return fault("notify", s.do(ctx, s.db, "notify", nil, s.channel()))
}

// NotifyTx sends the hint from within the caller's transaction: it goes out with
// its commit. It suits a program that submits seldom and cannot call Nudge.
func (s *Store) NotifyTx(ctx context.Context, tx onereply.Tx) error {
	t, err := of(tx)
	if err != nil {
		return err
	}
	return fault("notify", s.do(ctx, t, "notify", nil, s.channel()))
}
