package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/sqlite"
)

const (
	callers    = 16
	submitTime = 3 * time.Second
)

// ask and answer are the input and response of the measured kind: a sentence.
type ask struct {
	Text string `json:"text"`
}

type answer struct {
	Text string `json:"text"`
}

const sentence = "What does the contract say about notice, and who has to be told by when?"

// notes is the table of the application whose hooks are measured.
const notes = `CREATE TABLE notes (task_id TEXT NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (task_id, role)) STRICT, WITHOUT ROWID`

// open opens a fresh file with the application's table in it.
func open(ctx context.Context, path string) (*sqlite.Store, error) {
	s, err := sqlite.Open(ctx, path, sqlite.Options{Migrate: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return s, s.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
		_, err := sqlite.Unwrap(tx).ExecContext(ctx, notes)
		return err
	})
}

const insertNote = `INSERT INTO notes (task_id, role, text) VALUES (?, ?, ?)`

// kind does no work; its hooks write a row each where they are wanted.
func kind(created, ended bool) *onereply.Definition[ask, answer] {
	k := &onereply.Definition[ask, answer]{
		Name: "note",
		Work: func(context.Context, onereply.Attempt, ask) (answer, error) { return answer{Text: sentence}, nil },
	}
	if created {
		k.Created = func(ctx context.Context, tx onereply.Tx, all []onereply.Created[ask]) error {
			for _, c := range all {
				if _, err := sqlite.Unwrap(tx).ExecContext(ctx, insertNote, string(c.Task.ID), "user", c.In.Text); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if ended {
		k.Ended = func(ctx context.Context, tx onereply.Tx, all []onereply.Ended[ask, answer]) error {
			for _, e := range all {
				if _, err := sqlite.Unwrap(tx).ExecContext(ctx, insertNote, string(e.Task.ID), "assistant", e.Out.Text); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return k
}

// submissions measures durable submissions a second.
func submissions(ctx context.Context, l *lab, runs int) ([]figure, error) {
	return rivals(l, runs, "submissions",
		side{"onereply", func() (int, error) { return submitEngine(ctx, l.file()) }},
		side{"plain SQL, group commit", func() (int, error) { return submitPlain(ctx, l.file()) }})
}

// pace runs callers at once until the time is over and returns how many calls
// were made.
func pace(callers int, d time.Duration, call func(caller, n int) error) (int, error) {
	var wg sync.WaitGroup
	var done atomic.Int64
	var failed atomic.Pointer[error]
	began := time.Now()
	for c := range callers {
		wg.Go(func() {
			for n := 0; time.Since(began) < d && failed.Load() == nil; n++ {
				if err := call(c, n); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return int(done.Load()), nil
}

func submitEngine(ctx context.Context, path string) (int, error) {
	s, err := open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	k := kind(true, false)
	e, err := engine.New(engine.Options{Store: s, Kinds: []onereply.Kind{k.Kind()}, Workers: -1})
	if err != nil {
		return 0, err
	}
	return pace(callers, submitTime, func(caller, n int) error {
		sub, err := k.Submission("bench", fmt.Sprintf("%d-%d", caller, n), ask{Text: sentence})
		if err != nil {
			return err
		}
		r, err := e.Submit(ctx, sub)
		if err == nil && !r.Created {
			err = fmt.Errorf("task %s was there already", r.Task.ID)
		}
		return err
	})
}

// plainRow is one submission's rows for the plain side.
type plainRow struct {
	key  string
	done chan error
}

func submitPlain(ctx context.Context, path string) (int, error) {
	db, err := plainDB(ctx, path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	waiting := make(chan plainRow, callers)
	ended := make(chan error, 1)
	go func() { ended <- plainWriter(ctx, db, waiting) }()
	done, err := pace(callers, submitTime, func(caller, n int) error {
		row := plainRow{key: fmt.Sprintf("%d-%d", caller, n), done: make(chan error, 1)}
		waiting <- row
		return <-row.done
	})
	close(waiting)
	if writer := <-ended; err == nil {
		err = writer
	}
	return done, err
}

// plainWriter commits whatever waits, until nothing more comes.
func plainWriter(ctx context.Context, db *sql.Conn, waiting <-chan plainRow) error {
	statements, err := prepare(ctx, db)
	if err != nil {
		return err
	}
	for first := range waiting {
		group := gather(first, waiting)
		err := inTx(ctx, db, func() error {
			for _, row := range group {
				if err := statements.submit(ctx, onereply.TaskID(ids.New()), row.key, true); err != nil {
					return err
				}
			}
			return nil
		})
		for _, row := range group {
			row.done <- err
		}
	}
	return nil
}
