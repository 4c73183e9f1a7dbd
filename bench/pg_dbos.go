package main

import (
	"context"
	"errors"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// dbosOn launches DBOS on a database. The workflow writes the answer's row in a
// step of the same database, which is one transaction with the step's record.
type dbosOn struct {
	ctx   dbos.Context
	data  *dbos.DataSource
	queue dbos.Queue
}

func launchDBOS(ctx context.Context, d *database) (*dbosOn, error) {
	pool, err := d.connect(ctx, connections) // it closes what it is given
	if err != nil {
		return nil, err
	}
	c, err := dbos.NewContext(ctx, dbos.Config{AppName: "bench", SystemDBPool: pool, Logger: silent})
	if err != nil {
		return nil, err
	}
	o := &dbosOn{ctx: c}
	if o.data, err = dbos.NewDataSource(c, pool); err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(c, o.note)
	if o.queue, err = dbos.RegisterQueue(c, "notes"); err != nil {
		return nil, err
	}
	return o, dbos.Launch(c)
}

// note is the workflow.
func (o *dbosOn) note(ctx dbos.Context, in ask) (answer, error) {
	id, err := dbos.GetWorkflowID(ctx)
	if err != nil {
		return answer{}, err
	}
	_, err = dbos.RunAsTransaction(ctx, o.data, func(ctx context.Context, tx dbos.Tx) (int64, error) {
		result, err := tx.Exec(ctx, insertNotePg, id, "assistant", sentence)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
	return answer{Text: sentence}, err
}

func (o *dbosOn) close() error { return dbos.Shutdown(o.ctx, 20*time.Second) }

// dbosSubmits enqueues from so many callers, on a queue that another process
// would serve: its workers are not part of the figure.
func dbosSubmits(callers int) entrant {
	return entrant{"DBOS enqueue", func(ctx context.Context, d *database, w *watch) error {
		o, err := launchDBOS(ctx, d) // for its tables
		if err != nil {
			return err
		}
		if err := o.close(); err != nil {
			return err
		}
		c, err := dbos.NewClient(ctx, dbos.ClientConfig{SystemDBPool: d.pool, Logger: silent})
		if err != nil {
			return err
		}
		err = w.pace(callers, func(string) func() error {
			return func() error {
				_, err := dbos.Enqueue[answer, ask](c, "elsewhere", "note", ask{Text: sentence})
				return err
			}
		})
		return errors.Join(err, dbos.Shutdown(c, 20*time.Second))
	}}
}

// dbosLife starts workflows in this process, which is quicker than its queue,
// and waits for each.
func dbosLife(callers int) entrant {
	return entrant{"DBOS workflow", func(ctx context.Context, d *database, w *watch) error {
		o, err := launchDBOS(ctx, d)
		if err != nil {
			return err
		}
		err = w.pace(callers, func(string) func() error {
			return func() error {
				handle, err := dbos.RunWorkflow(o.ctx, o.note, ask{Text: sentence})
				if err != nil {
					return err
				}
				_, err = handle.GetResult()
				return err
			}
		})
		return errors.Join(err, o.close())
	}}
}
