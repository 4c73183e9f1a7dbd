package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/internal/pgcluster"
	"github.com/onereply/onereply/store/postgres"
)

// asked is a kind whose end writes a row of the application's own.
func asked(schema string) *onereply.Definition[string, string] {
	insert := "INSERT INTO " + schema + ".app (task_id, text) VALUES ($1, $2)"
	return &onereply.Definition[string, string]{
		Name:   "reply",
		Policy: onereply.Policy{MaxAttempts: 100, MaxCalls: 100, Backoff: onereply.Backoff{Base: 5 * time.Millisecond, Max: 20 * time.Millisecond}},
		Work: func(ctx context.Context, a onereply.Attempt, in string) (out string, err error) {
			err = a.Call(ctx, func(ctx context.Context, c onereply.Call) error {
				if err := c.Send(); err != nil {
					return err
				}
				return a.Draft(ctx, in)
			})
			return "answer to " + in, err
		},
		Ended: func(ctx context.Context, tx onereply.Tx, ended []onereply.Ended[string, string]) error {
			for _, e := range ended {
				if e.Out == nil {
					continue
				}
				if _, err := postgres.Unwrap(tx).Exec(ctx, insert, string(e.Task.ID), *e.Out); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Connections killed in the middle of everything, and the server crashed twice:
// every key ends as one completed task with one response and one row of the
// application's own, and callers saw nothing but "unavailable".
func TestALostConnectionOrServerLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	needServer(t)
	cluster, err := pgcluster.Start(t.Context(), "fsync = off", "log_min_messages = fatal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := pgxpool.ParseConfig(cluster.URL("postgres") + "&application_name=outage")
	if err != nil {
		t.Fatal(err)
	}
	c.MaxConns = 12
	s := &site{TB: t, schema: "onereply", pool: pool(t, c), ids: onereply.NewIDs()}
	killer, err := pgxpool.ParseConfig(cluster.URL("postgres"))
	s.must(err)
	s.other = pool(t, killer)
	s.store, err = postgres.New(s.pool, postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	t.Cleanup(func() { s.must(s.store.Close()) })
	s.must(s.store.Migrate(t.Context()))
	s.exec("CREATE TABLE onereply.app (task_id text NOT NULL, text text NOT NULL)")
	outage(s, asked("onereply"), func(round int) {
		if round == 5 || round == 13 {
			s.must(cluster.Stop(true))
			s.must(cluster.StartServer(t.Context()))
			return
		}
		for {
			_, err := s.other.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outage'")
			if err == nil || t.Context().Err() != nil {
				return
			}
		}
	})
}

// outage presses keys on a running engine while harm is done, until every one
// has been answered.
func outage(s *site, kind *onereply.Definition[string, string], harm func(round int)) {
	e, err := engine.New(engine.Options{
		Store: s.store, Kinds: []onereply.Kind{kind.Kind()}, Workers: 8, Lease: 600 * time.Millisecond, Poll: 50 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	s.must(err)
	ctx, stop := context.WithCancel(s.Context())
	running := make(chan error)
	go func() { running <- e.Run(ctx) }()
	const keys = 120
	var pressed, lost atomic.Int32
	const rounds = 20
	turns := make([]chan struct{}, rounds)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			<-turns[i%rounds]
			sub, err := kind.Submission("w", fmt.Sprint("k", i), fmt.Sprint("question ", i))
			for done := false; !done; {
				if err == nil {
					_, err = e.Submit(ctx, sub)
				}
				switch {
				case err == nil:
					done = true
				case errors.Is(err, onereply.ErrUnavailable):
					lost.Add(1)
					err = nil
				default:
					s.Errorf("key %d: %v", i, err)
					done = true
				}
			}
			pressed.Add(1)
		})
	}
	for round, turn := range turns {
		close(turn)
		harm(round)
	}
	all.Wait()
	s.until("everything has ended", "SELECT count(*) = $1 FROM onereply.tasks WHERE status IN ('completed', 'failed', 'cancelled')", keys)
	stop()
	s.must(<-running)
	for question, want := range map[string]int{
		"SELECT count(*) FROM onereply.tasks WHERE status = 'completed'": keys,
		"SELECT count(*) FROM onereply.tasks":                            keys,
		"SELECT count(*) FROM onereply.submissions":                      keys,
		"SELECT count(*) FROM onereply.responses":                        keys,
		"SELECT count(*) FROM onereply.app":                              keys,
		"SELECT count(DISTINCT text) FROM onereply.app":                  keys,
		"SELECT count(*) FROM onereply.calls WHERE number > 100":         0,
		"SELECT count(*) FROM onereply.attempts GROUP BY task_id, outcome = 'accepted' HAVING outcome = 'accepted' AND count(*) > 1 UNION ALL SELECT 0 LIMIT 1": 0,
		"SELECT count(*) FROM onereply.drafts": 0,
	} {
		var n int
		s.scan(&n, question)
		if n != want {
			s.Errorf("%s: %d, want %d", question, n, want)
		}
	}
	s.Logf("%d pressed, %d answers of unavailable", pressed.Load(), lost.Load())
}
