package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/postgres"
)

const (
	contestTime = 3 * time.Second
	batchSize   = 1000
)

// pace runs one operation from so many callers for the contest's time, after each
// caller's warm-up of a few operations that are not timed.
func (w *watch) pace(callers int, caller func(name string) func() error) error {
	ops := make([]func() error, callers)
	for c := range ops {
		ops[c] = caller(fmt.Sprint("caller ", c))
	}
	if _, err := pace(callers, contestTime/10, func(c, _ int) error { return ops[c]() }); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	n, err := pace(callers, contestTime, func(c, _ int) error { return ops[c]() })
	if err != nil {
		return err
	}
	return w.end(n)
}

// batches runs an operation that does a whole batch, one after the other.
func (w *watch) batches(op func() error) error {
	if err := op(); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	n := 0
	for began := time.Now(); time.Since(began) < contestTime; n += batchSize {
		if err := op(); err != nil {
			return err
		}
	}
	return w.end(n)
}

// within waits for something that must happen in five minutes.
func within(ctx context.Context, done <-chan struct{}) error {
	patience := time.NewTimer(5 * time.Minute)
	defer patience.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return errors.New("a task did not end within five minutes")
	}
}

// pgSubmissions measures durable submissions, each with the application's row.
func pgSubmissions(ctx context.Context, l *lab, runs int) ([]figure, error) {
	var all []figure
	for _, callers := range []int{16, 64} {
		figures, err := contest(ctx, l, runs, fmt.Sprintf("%d callers: ", callers), "submissions",
			productSubmits(callers), oneRow(callers), riverSubmits(callers), dbosSubmits(callers))
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}

func productSubmits(callers int) entrant {
	return entrant{"onereply", func(ctx context.Context, d *database, w *watch) error {
		p, err := product(ctx, d, pgKind(true, false), -1, nil)
		if err != nil {
			return err
		}
		err = w.pace(callers, func(string) func() error {
			return func() error {
				sub, err := p.press(ids.New())
				if err != nil {
					return err
				}
				_, err = p.engine.Submit(ctx, sub)
				return err
			}
		})
		return errors.Join(err, p.close())
	}}
}

// pgOwnTx measures one submission in each transaction of the application's own.
func pgOwnTx(ctx context.Context, l *lab, runs int) ([]figure, error) {
	ours := entrant{"onereply SubmitTx", func(ctx context.Context, d *database, w *watch) error {
		p, err := product(ctx, d, pgKind(false, false), -1, nil)
		if err != nil {
			return err
		}
		err = w.pace(callers, func(string) func() error {
			return func() error {
				id := ids.New()
				sub, err := p.press(id)
				if err != nil {
					return err
				}
				return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, insertNotePg, id, "user", sentence); err != nil {
						return err
					}
					_, err := p.engine.SubmitTx(ctx, postgres.Wrap(tx), sub)
					return err
				})
			}
		})
		return errors.Join(err, p.close())
	}}
	return contest(ctx, l, runs, "", "submissions", ours, riverSubmits(callers))
}

// pgBatches measures submissions of a thousand at once.
func pgBatches(ctx context.Context, l *lab, runs int) ([]figure, error) {
	ours := entrant{"onereply SubmitManyTx", func(ctx context.Context, d *database, w *watch) error {
		p, err := product(ctx, d, pgKind(false, false), -1, nil)
		if err != nil {
			return err
		}
		err = w.batches(func() error {
			subs := make([]onereply.Submission, batchSize)
			for i := range subs {
				if subs[i], err = p.press(ids.New()); err != nil {
					return err
				}
			}
			return p.engine.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
				_, err := p.engine.SubmitManyTx(ctx, tx, subs)
				return err
			})
		})
		return errors.Join(err, p.close())
	}}
	return contest(ctx, l, runs, "", "submissions", ours, riverMany(true), riverMany(false))
}
