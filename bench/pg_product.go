package main

import (
	"context"
	"errors"
	"sync"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/postgres"
)

const pgInsertNotes = `INSERT INTO notes (task_id, role, text) SELECT id, $2, text FROM unnest($1::text[], $3::text[]) AS u(id, text)`

// pgKind does no work; its hooks write a row each where they are wanted.
func pgKind(created, ended bool) *onereply.Definition[ask, answer] {
	k := &onereply.Definition[ask, answer]{
		Name: "note",
		Work: func(context.Context, onereply.Attempt, ask) (answer, error) { return answer{Text: sentence}, nil },
	}
	if created {
		k.Created = func(ctx context.Context, tx onereply.Tx, all []onereply.Created[ask]) error {
			ids, texts := make([]string, len(all)), make([]string, len(all))
			for i, c := range all {
				ids[i], texts[i] = string(c.Task.ID), c.In.Text
			}
			_, err := postgres.Unwrap(tx).Exec(ctx, pgInsertNotes, ids, "user", texts)
			return err
		}
	}
	if ended {
		k.Ended = func(ctx context.Context, tx onereply.Tx, all []onereply.Ended[ask, answer]) error {
			ids, texts := make([]string, len(all)), make([]string, len(all))
			for i, e := range all {
				ids[i], texts[i] = string(e.Task.ID), e.Out.Text
			}
			_, err := postgres.Unwrap(tx).Exec(ctx, pgInsertNotes, ids, "assistant", texts)
			return err
		}
	}
	return k
}

// onPostgres is the product on a database of the cluster.
type onPostgres struct {
	store  *postgres.Store
	engine *engine.Engine
	kind   *onereply.Definition[ask, answer]
	stop   context.CancelFunc
	left   chan error
}

// product opens an engine with so many workers (negative: none) and the
// observer, and does not run it yet.
func product(ctx context.Context, d *database, k *onereply.Definition[ask, answer], workers int, o onereply.Observer) (*onPostgres, error) {
	p := &onPostgres{kind: k}
	var err error
	if p.store, err = postgres.New(d.pool, postgres.Options{}); err != nil {
		return nil, err
	}
	if err := p.store.Migrate(ctx); err != nil {
		return nil, err
	}
	p.engine, err = engine.New(engine.Options{
		Store: p.store, Kinds: []onereply.Kind{k.Kind()}, Workers: workers, Logger: silent, Observer: o,
	})
	return p, err
}

func (p *onPostgres) run(ctx context.Context) {
	running, stop := context.WithCancel(ctx)
	p.stop, p.left = stop, make(chan error, 1)
	go func() { p.left <- p.engine.Run(running) }()
}

func (p *onPostgres) close() error {
	var err error
	if p.stop != nil {
		p.stop()
		err = <-p.left
	}
	return errors.Join(err, p.store.Close())
}

// press is one submission under a key.
func (p *onPostgres) press(key string) (onereply.Submission, error) {
	return p.kind.Submission("bench", key, ask{Text: sentence})
}

// arrivals lets a caller wait for the end of what it submitted.
type arrivals struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

func newArrivals() *arrivals { return &arrivals{waiting: map[string]chan struct{}{}} }

// of is closed when id arrives; ask before it can.
func (a *arrivals) of(id string) <-chan struct{} {
	c := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[id] = c
	return c
}

func (a *arrivals) arrived(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.waiting[id]; ok {
		close(c)
		delete(a.waiting, id)
	}
}

// on calls arrived for the steps of one type.
func (a *arrivals) on(kind onereply.EventType) onereply.Observer {
	return onereply.ObserverFunc(func(s onereply.Step) {
		if s.Type == kind {
			a.arrived(string(s.Task))
		}
	})
}
