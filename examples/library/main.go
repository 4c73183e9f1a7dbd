// Command library uses the engine as a library: one kind of task on one SQLite
// file, whose end writes a row of the program's own in the same transaction.
// Run it twice: the second run finds the first one's answer under the same key.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/sqlite"
)

//go:embed sql/add.sql
var addShout string

// shouts is a kind of task: its input is a text and so is its response. Work
// hands back a candidate; the engine accepts it at most once, and Ended then
// writes the row in the very transaction that completes the task.
var shouts = &onereply.Definition[string, string]{
	Name: "shout",
	Work: func(ctx context.Context, a onereply.Attempt, in string) (out string, err error) {
		return strings.ToUpper(in), a.Progress(ctx, []byte("nearly there"))
	},
	Ended: func(ctx context.Context, tx onereply.Tx, ended []onereply.Ended[string, string]) (err error) {
		for _, e := range ended {
			if e.Out != nil && err == nil { // nil: it failed or was cancelled
				_, err = sqlite.Unwrap(tx).ExecContext(ctx, addShout, e.Task.ID, *e.Out)
			}
		}
		return err
	},
}

func main() {
	if err := run(context.Background(), os.Stdout, "library.db", "press-1", "hello"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run submits a text under a key, waits for the response and prints it.
func run(ctx context.Context, out io.Writer, file, key, text string) (err error) {
	db, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer db.Close()
	eng, err := engine.New(engine.Options{Store: db, Kinds: []onereply.Kind{shouts.Kind()}})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- eng.Run(running) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()

	sub, err := shouts.Submission("me", key, text)
	if err != nil {
		return err
	}
	res, err := eng.Submit(ctx, sub) // onereply.ErrKeyReused when the key stands for another text
	if err != nil {
		return err
	}
	task, err := eng.Wait(ctx, "me", res.Task.ID)
	fmt.Fprintf(out, "%s %s (created now: %v)\n", task.Status, task.Response, res.Created)
	return err
}
