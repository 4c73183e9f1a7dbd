package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const insertNotePg = `INSERT INTO notes (task_id, role, text) VALUES ($1, $2, $3)`

// riverArgs is River's job, with the same text as the product's.
type riverArgs struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "note" }

// riverWorker writes the answer's row and completes the job in one transaction,
// or does nothing where rows are not wanted.
type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	pool    *pgxpool.Pool
	row     bool
	started func(id string)
	ended   func(id string)
}

// Work implements river.Worker.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	if w.started != nil {
		w.started(job.Args.ID)
	}
	if w.row {
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, insertNotePg, job.Args.ID, "assistant", sentence); err != nil {
				return err
			}
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
			return err
		})
		if err != nil {
			return err
		}
	}
	if w.ended != nil {
		w.ended(job.Args.ID)
	}
	return nil
}

// riverOn makes a client with River's tables. workers is how many jobs it runs
// at once; 0: it only inserts. tuned takes the shortest fetch cooldown that River
// allows instead of its defaults.
func riverOn(ctx context.Context, d *database, w *riverWorker, workers int, tuned bool) (*river.Client[pgx.Tx], error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(d.pool), &rivermigrate.Config{Logger: silent})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	config := &river.Config{Logger: silent}
	if workers > 0 {
		w.pool = d.pool
		config.Workers = river.NewWorkers()
		river.AddWorker(config.Workers, w)
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
		if tuned {
			config.FetchCooldown = river.FetchCooldownMin
		}
	}
	return river.NewClient(riverpgxv5.New(d.pool), config)
}

// riverPress inserts the application's row and the job in one transaction.
func riverPress(ctx context.Context, d *database, client *river.Client[pgx.Tx], id string) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insertNotePg, id, "user", sentence); err != nil {
			return err
		}
		_, err := client.InsertTx(ctx, tx, riverArgs{ID: id, Text: sentence}, nil)
		return err
	})
}

func stopRiver(ctx context.Context, client *river.Client[pgx.Tx]) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	err := client.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return client.StopAndCancel(context.WithoutCancel(ctx))
	}
	return err
}

// riverSubmits presses from so many callers.
func riverSubmits(callers int) entrant {
	return entrant{"River InsertTx", func(ctx context.Context, d *database, w *watch) error {
		client, err := riverOn(ctx, d, nil, 0, false)
		if err != nil {
			return err
		}
		return w.pace(callers, func(string) func() error {
			return func() error { return riverPress(ctx, d, client, ids.New()) }
		})
	}}
}

// riverLife presses and waits until the worker has committed the answer's row.
func riverLife(callers int) entrant {
	return entrant{"River, JobCompleteTx", func(ctx context.Context, d *database, w *watch) error {
		ends := newArrivals()
		client, err := riverOn(ctx, d, &riverWorker{row: true, ended: ends.arrived}, max(callers, 100), true)
		if err != nil {
			return err
		}
		if err := client.Start(ctx); err != nil {
			return err
		}
		err = w.pace(callers, func(string) func() error {
			return func() error {
				id := ids.New()
				ended := ends.of(id)
				if err := riverPress(ctx, d, client, id); err != nil {
					return err
				}
				return within(ctx, ended)
			}
		})
		return errors.Join(err, stopRiver(ctx, client))
	}}
}

// riverMany inserts in batches.
func riverMany(fast bool) entrant {
	name := "River InsertMany"
	if fast {
		name = "River InsertManyFast"
	}
	return entrant{name, func(ctx context.Context, d *database, w *watch) error {
		client, err := riverOn(ctx, d, nil, 0, false)
		if err != nil {
			return err
		}
		return w.batches(func() error {
			jobs := make([]river.InsertManyParams, batchSize)
			for i := range jobs {
				jobs[i].Args = riverArgs{ID: ids.New(), Text: sentence}
			}
			if fast {
				_, err := client.InsertManyFast(ctx, jobs)
				return err
			}
			_, err := client.InsertMany(ctx, jobs)
			return err
		})
	}}
}

// riverDrain works off jobs that are queued already and do nothing.
func riverDrain(workers int, tuned bool) entrant {
	name := fmt.Sprintf("River, %d workers", workers)
	if !tuned {
		name += ", its defaults"
	}
	return entrant{name, func(ctx context.Context, d *database, w *watch) error {
		all := countdown()
		client, err := riverOn(ctx, d, &riverWorker{ended: func(string) { all.one() }}, workers, tuned)
		if err != nil {
			return err
		}
		for n := 0; n < queuedTasks; n += batchSize {
			jobs := make([]river.InsertManyParams, batchSize)
			for i := range jobs {
				jobs[i].Args = riverArgs{ID: ids.New(), Text: sentence}
			}
			if _, err := client.InsertManyFast(ctx, jobs); err != nil {
				return err
			}
		}
		if err := w.begin(); err != nil {
			return err
		}
		if err := client.Start(ctx); err != nil {
			return err
		}
		if err := within(ctx, all.done); err != nil {
			return err
		}
		// Its completer runs behind: what counts is that completions are durable.
		for left := 1; left > 0; {
			if err := d.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&left); err != nil {
				return err
			}
			rest(ctx, time.Millisecond)
		}
		return errors.Join(w.end(queuedTasks), stopRiver(ctx, client))
	}}
}
