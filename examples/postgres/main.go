// Command postgres shows an application that has a pgx pool and tables of its
// own: a press of Send adds a ticket and its reply task in the application's own
// transaction, and the answer is written to the ticket in the transaction that
// completes the task. Its one argument is the database's URL.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/postgres"
)

var (
	//go:embed sql/create.sql
	createTickets string
	//go:embed sql/ticket.sql
	addTicket string
	//go:embed sql/answer.sql
	saveAnswer string
)

type ticket struct {
	ID       int64
	Question string
}

var replies = &onereply.Definition[ticket, string]{
	Name: "reply",
	Work: func(_ context.Context, _ onereply.Attempt, in ticket) (string, error) {
		return strings.ToUpper(in.Question), nil
	},
	Ended: func(ctx context.Context, tx onereply.Tx, ended []onereply.Ended[ticket, string]) (err error) {
		for _, e := range ended {
			if e.Out != nil && err == nil { // nil: it failed or was cancelled
				_, err = postgres.Unwrap(tx).Exec(ctx, saveAnswer, e.In.ID, string(e.Task.ID), *e.Out)
			}
		}
		return err
	},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: postgres DATABASE_URL")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], "press-1", "what is a fencing token?"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, url, press, question string) (err error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, createTickets); err != nil {
		return err
	}
	db, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil { // tables in a schema of their own, "onereply"
		return err
	}
	eng, err := engine.New(engine.Options{Store: db, Kinds: []onereply.Kind{replies.Kind()}})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- eng.Run(running) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()

	res, err := send(ctx, pool, eng, press, question)
	if err != nil {
		return err
	}
	task, err := eng.Wait(ctx, "support", res.Task.ID)
	fmt.Fprintf(out, "%s %s (created now: %v)\n", task.Status, task.Response, res.Created)
	return err
}

// send is the application's handler: one transaction of its own, with its ticket
// and the engine's task.
func send(ctx context.Context, pool *pgxpool.Pool, eng *engine.Engine, press, question string) (res onereply.Submitted, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		in := ticket{Question: question}
		if err := tx.QueryRow(ctx, addTicket, press, question).Scan(&in.ID); err != nil {
			return err
		}
		sub, err := replies.Submission("support", press, in)
		if err != nil {
			return err
		}
		res, err = eng.SubmitTx(ctx, postgres.Wrap(tx), sub) // onereply.ErrKeyReused when the press stands for another question
		return err
	})
	if err == nil {
		eng.Nudge() // or let the poll find it within a second
	}
	return res, err
}
