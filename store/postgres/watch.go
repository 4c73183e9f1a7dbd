package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ListenOff as Options.Listen: polling, which is the truth anyway, finds what
// other processes commit.
const ListenOff = "off"

// listenCheck is how long a silent connection is trusted.
const listenCheck = 30 * time.Second

// Watch implements store.Reader. It hears this process's commits directly and
// those of others on one connection that listens; it returns an error when that
// connection breaks, and the engine calls it again.
func (s *Store) Watch(ctx context.Context, hint func()) error {
	wake := make(chan struct{}, 1)
	s.hints.mu.Lock()
	if s.hints.wake == nil {
		s.hints.wake = make(map[chan struct{}]bool)
	}
	s.hints.wake[wake] = true
	s.hints.mu.Unlock()
	defer func() {
		s.hints.mu.Lock()
		delete(s.hints.wake, wake)
		s.hints.mu.Unlock()
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	heard := make(chan error, 1)
	if s.o.Listen != ListenOff {
		go func() { heard <- s.listen(ctx, wake) }()
	}
	for {
		select {
		case <-wake:
			hint()
		case <-ctx.Done():
			if s.o.Listen != ListenOff {
				_ = <-heard //nolint:staticcheck // ended by us
			}
			return nil
		case err := <-heard:
			if ctx.Err() != nil {
				return nil
			}
			return fault("watch", err)
		}
	}
}

// listen sets wake at every hint of another process, until ctx ends or the
// connection breaks.
func (s *Store) listen(ctx context.Context, wake chan<- struct{}) error {
	follow := func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
			return err
		}
		set(wake) // what was committed before we listened
		for {
			from, err := heard(ctx, conn)
			if err != nil {
				return err
			}
			if from != s.name {
				set(wake)
			}
		}
	}
	if s.o.Listen == "" {
		return s.db.session(ctx, follow)
	}
	conn, err := pgx.Connect(ctx, s.o.Listen)
	if err != nil {
		return err
	}
	return errors.Join(follow(conn), closing(ctx, conn))
}

// heard waits for a hint and says who sent it. Silence is checked from time to
// time: a line that went dead says nothing either.
func heard(ctx context.Context, conn *pgx.Conn) (from string, err error) {
	for {
		wait, cancel := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			return n.Payload, nil
		case ctx.Err() != nil || conn.IsClosed():
			return "", err
		}
		check, cancel := context.WithTimeout(ctx, hintPatience)
		err = conn.Ping(check)
		cancel()
		if err != nil {
			return "", err
		}
	}
}

func set(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// closing ends a connection that nobody else will use.
func closing(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return rolledBack(conn.Close(ctx))
}
