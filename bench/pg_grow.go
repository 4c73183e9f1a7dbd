package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// fill writes so many tasks with all their rows, old ones, without going through
// the engine.
var fill = []string{
	`SET session_replication_role = replica`, // their foreign keys hold
	`INSERT INTO onereply.submissions (scope, action, key, fingerprint, task_id, created_at, expires_at)
		SELECT 'bench', 'note', '0' || lpad(n::text, 25, '0'), '\x00', '0' || lpad(n::text, 25, '0'), now(), now() + interval '168 hours' FROM generate_series(1, %[1]d) n`,
	`INSERT INTO onereply.inputs SELECT '0' || lpad(n::text, 25, '0'), 'note', '0' || lpad(n::text, 25, '0'), '{"text":"` + sentence + `"}' FROM generate_series(1, %[1]d) n`,
	`INSERT INTO notes SELECT '0' || lpad(n::text, 25, '0'), 'user', '` + sentence + `' FROM generate_series(1, %[1]d) n`,
}

var fillEnded = []string{
	`INSERT INTO onereply.tasks (id, kind, scope, status, version, attempt, worker, run_at, created_at, ended_at, attempts_used, attempts_max, calls_max, elapsed_max, elapsed_from, on_unknown, acceptance)
		SELECT '0' || lpad(n::text, 25, '0'), 'note', 'bench', 'completed', 1, 'a', 'w', now(), now(), now(), 1, 5, 3, '15 minutes', now(), 'retry', 'current-assignment' FROM generate_series(1, %[1]d) n`,
	`INSERT INTO onereply.attempts (task_id, version, attempt, worker, started_at, ended_at, outcome)
		SELECT '0' || lpad(n::text, 25, '0'), 1, 'a', 'w', now(), now(), 'accepted' FROM generate_series(1, %[1]d) n`,
	`INSERT INTO onereply.responses SELECT '0' || lpad(n::text, 25, '0'), 1, 'a', '{"text":"` + sentence + `"}', now() FROM generate_series(1, %[1]d) n`,
	`INSERT INTO notes SELECT '0' || lpad(n::text, 25, '0'), 'assistant', '` + sentence + `' FROM generate_series(1, %[1]d) n`,
}

var fillQueued = []string{
	`INSERT INTO onereply.tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max, elapsed_max, elapsed_from, on_unknown, acceptance)
		SELECT '0' || lpad(n::text, 25, '0'), 'note', 'bench', 'queued', now(), now(), 5, 3, '15 minutes', now(), 'retry', 'current-assignment' FROM generate_series(1, %[1]d) n`,
}

// grown is a database with so many tasks in it already.
type grown struct {
	name   string
	n      int
	queued bool
	d      *database
	p      *onPostgres
	ends   *arrivals
}

func (g *grown) open(ctx context.Context, l *lab) (err error) {
	if g.d, err = l.database(ctx); err != nil {
		return err
	}
	g.ends = newArrivals()
	workers := 512
	if g.queued {
		workers = -1 // claims are made by hand
	}
	if g.p, err = product(ctx, g.d, pgKind(true, true), workers, g.ends.on(onereply.EventAccepted)); err != nil {
		return err
	}
	own := fillEnded
	if g.queued {
		own = fillQueued
	}
	conn, err := g.d.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for i, statement := range append(append([]string{}, fill...), own...) {
		if i > 0 {
			statement = fmt.Sprintf(statement, g.n)
		}
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for _, statement := range []string{`RESET session_replication_role`, `VACUUM ANALYZE`, `CHECKPOINT`} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if !g.queued {
		g.p.run(ctx)
	}
	return nil
}

// claims measures a claim of a hundred, in milliseconds each.
func (g *grown) claims(ctx context.Context) (float64, error) {
	var took []float64
	for range 30 {
		began := time.Now()
		claimed, err := g.p.store.Claim(ctx, store.Claim{Worker: "bench", Lease: time.Hour, Kinds: []string{"note"}, Limit: 100, NewAttempt: ids.NewAttempt})
		if err != nil {
			return 0, err
		}
		if len(claimed.Assignments) != 100 {
			return 0, fmt.Errorf("claimed %d tasks of a hundred", len(claimed.Assignments))
		}
		took = append(took, millis(time.Since(began)))
	}
	return percentile(took, 50), nil
}

// pgGrown measures whole lives beside tables with ended tasks, and claims beside
// queued ones.
func pgGrown(ctx context.Context, l *lab, runs int) (figures []figure, err error) {
	all := []*grown{
		{name: "10,000 ended", n: 10_000}, {name: "1,000,000 ended", n: 1_000_000},
		{name: "10,000 queued", n: 10_000, queued: true}, {name: "1,000,000 queued", n: 1_000_000, queued: true},
	}
	defer func() {
		for _, g := range all {
			if g.p != nil {
				err = errors.Join(err, g.p.close())
			}
			if g.d != nil {
				err = errors.Join(err, g.d.close(ctx))
			}
		}
	}()
	for _, g := range all {
		if err := g.open(ctx, l); err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
	}
	figures, costs := make([]figure, len(all)), make([]figure, 2)
	for range runs {
		for i, g := range all {
			if g.queued {
				took, err := g.claims(ctx)
				if err != nil {
					return nil, err
				}
				figures[i].Name, figures[i].Unit = "a claim of 100, "+g.name, "ms"
				figures[i].Values = append(figures[i].Values, took)
				continue
			}
			w := &watch{server: g.d.cluster.Pid()}
			err := w.pace(64, func(string) func() error { return func() error { return g.p.live(ctx, g.ends) } })
			if err != nil {
				return nil, err
			}
			figures[i].Name, figures[i].Unit = "whole life, "+g.name, "tasks/s"
			costs[i].Name, costs[i].Unit = "whole life, "+g.name+", CPU for each", "µs"
			figures[i].Values, costs[i].Values = append(figures[i].Values, w.rate), append(costs[i].Values, w.cost)
		}
	}
	return append(figures, costs[0], costs[1],
		ratio("ratio of the rates, 1,000,000 to 10,000 ended", figures[1], figures[0]),
		ratio("ratio of the CPU, 1,000,000 to 10,000 ended", costs[1], costs[0]),
		ratio("ratio of a claim's time, 1,000,000 to 10,000 queued", figures[3], figures[2])), nil
}
