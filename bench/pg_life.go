package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/onereply/onereply"
)

// pgLife measures whole durable lives: every caller submits with the
// application's row, waits until the answer is durable with a row of the
// application's, and submits again.
func pgLife(ctx context.Context, l *lab, runs int) ([]figure, error) {
	var all []figure
	for _, callers := range []int{64, 256} {
		sides := []entrant{productLife(callers), batchedLife(), riverLife(callers)}
		if callers == 64 {
			sides = append(sides, dbosLife(callers), lifeByStatement(connections))
		}
		figures, err := contest(ctx, l, runs, fmt.Sprintf("%d callers: ", callers), "tasks", sides...)
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}

func productLife(callers int) entrant {
	return entrant{"onereply", func(ctx context.Context, d *database, w *watch) error {
		ends := newArrivals()
		p, err := product(ctx, d, pgKind(true, true), 512, ends.on(onereply.EventAccepted))
		if err != nil {
			return err
		}
		p.run(ctx)
		err = w.pace(callers, func(string) func() error { return func() error { return p.live(ctx, ends) } })
		return errors.Join(err, p.close())
	}}
}

// live takes one task through its life.
func (p *onPostgres) live(ctx context.Context, ends *arrivals) error {
	id := ids.New()
	sub, err := p.press(id)
	if err != nil {
		return err
	}
	sub.TaskID = onereply.TaskID(id)
	ended := ends.of(id)
	if _, err := p.engine.Submit(ctx, sub); err != nil {
		return err
	}
	return within(ctx, ended)
}

const queuedTasks = 20_000

// pgDrain measures how fast tasks that wait already are worked off by workers
// that do nothing.
func pgDrain(ctx context.Context, l *lab, runs int) ([]figure, error) {
	ours := func(workers int) entrant {
		return entrant{fmt.Sprintf("onereply, %d workers", workers), func(ctx context.Context, d *database, w *watch) error {
			all := countdown()
			p, err := product(ctx, d, pgKind(false, false), workers, onereply.ObserverFunc(func(s onereply.Step) {
				if s.Type == onereply.EventAccepted {
					all.one()
				}
			}))
			if err != nil {
				return err
			}
			if err := p.queue(ctx, queuedTasks); err != nil {
				return err
			}
			if err := w.begin(); err != nil {
				return err
			}
			p.run(ctx)
			if err := within(ctx, all.done); err != nil {
				return err
			}
			return errors.Join(w.end(queuedTasks), p.close())
		}}
	}
	return contest(ctx, l, runs, "", "tasks", ours(1000), riverDrain(1000, true), riverDrain(100, false))
}

// queue submits tasks in batches.
func (p *onPostgres) queue(ctx context.Context, n int) error {
	for ; n > 0; n -= batchSize {
		subs := make([]onereply.Submission, min(n, batchSize))
		for i := range subs {
			var err error
			if subs[i], err = p.press(ids.New()); err != nil {
				return err
			}
		}
		err := p.engine.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
			_, err := p.engine.SubmitManyTx(ctx, tx, subs)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// counter is closed after the queued tasks have ended.
type counter struct {
	left atomic.Int64
	done chan struct{}
}

func countdown() *counter {
	c := &counter{done: make(chan struct{})}
	c.left.Store(queuedTasks)
	return c
}

func (c *counter) one() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// pgRecovery is recovery with the service on PostgreSQL.
func pgRecovery(ctx context.Context, l *lab, runs int) ([]figure, error) {
	took := figure{Name: "kill to running again", Unit: "s"}
	limit := figure{Name: "lease + 1 s", Unit: "s"}
	for n := range runs {
		d, err := l.database(ctx)
		if err != nil {
			return nil, err
		}
		seconds, err := recoverOnce(ctx, l, d.url, n)
		if err := errors.Join(err, d.close(ctx)); err != nil {
			return nil, err
		}
		took.Values = append(took.Values, seconds)
		limit.Values = append(limit.Values, (recoveryLease + time.Second).Seconds())
	}
	return []figure{took, limit}, nil
}

// pgIdle counts statements on a database where nobody has anything to do.
func pgIdle(ctx context.Context, l *lab, runs int) ([]figure, error) {
	sides := []struct {
		name  string
		start func(context.Context, *database) (func() error, error)
	}{
		{"onereply serve, one process", func(ctx context.Context, d *database) (func() error, error) { return l.services(ctx, d, 1) }},
		{"onereply serve, ten processes", func(ctx context.Context, d *database) (func() error, error) { return l.services(ctx, d, 10) }},
		{"River client", func(ctx context.Context, d *database) (func() error, error) {
			client, err := riverOn(ctx, d, &riverWorker{}, 100, false)
			if err != nil {
				return nil, err
			}
			return func() error { return stopRiver(ctx, client) }, client.Start(ctx)
		}},
		{"DBOS", func(ctx context.Context, d *database) (func() error, error) {
			o, err := launchDBOS(ctx, d)
			if err != nil {
				return nil, err
			}
			return o.close, nil
		}},
	}
	figures := make([]figure, len(sides))
	for range min(runs, 3) { // it hardly varies
		for i, s := range sides {
			figures[i].Name, figures[i].Unit = s.name, "statements/s"
			n, err := statementsOf(ctx, l, s.start)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			figures[i].Values = append(figures[i].Values, n)
		}
	}
	return figures, nil
}

// services starts processes of the service on a database.
func (l *lab) services(ctx context.Context, d *database, n int) (func() error, error) {
	var all []*process
	for range n {
		p, err := l.serve(ctx, d.url)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return func() error {
		var err error
		for _, p := range all {
			err = errors.Join(err, p.stop())
		}
		return err
	}, nil
}

func statementsOf(ctx context.Context, l *lab, start func(context.Context, *database) (func() error, error)) (rate float64, err error) {
	d, err := l.database(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	stop, err := start(ctx, d)
	if err != nil {
		return 0, err
	}
	if _, err := d.pool.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
		return 0, err
	}
	rest(ctx, 3*time.Second)
	count := func() (n int64, err error) {
		err = d.pool.QueryRow(ctx, `SELECT coalesce(sum(s.calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database b ON b.oid = s.dbid
			WHERE b.datname = current_database() AND s.query NOT LIKE '%pg_stat_statements%'`).Scan(&n)
		return n, err
	}
	before, err := count()
	if err != nil {
		return 0, err
	}
	rest(ctx, idleTime)
	after, err := count()
	return float64(after-before) / idleTime.Seconds(), errors.Join(err, stop())
}

var silent = slog.New(slog.DiscardHandler)
