package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
)

const (
	lives       = 20_000
	lifeCallers = 128 // who submit at once
	lifeWorkers = 256
	lifeGroup   = 50
)

// wholeLife measures tasks a second from submission to end.
func wholeLife(ctx context.Context, l *lab, runs int) ([]figure, error) {
	return rivals(l, runs, "tasks",
		side{"onereply", func() (int, error) { return lives, lifeEngine(ctx, l.file()) }},
		side{"plain SQL in groups of 50", func() (int, error) { return lives, lifePlain(ctx, l.file()) }})
}

func lifeEngine(ctx context.Context, path string) error {
	s, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close()
	k := kind(false, true)
	var ended atomic.Int64
	all := make(chan struct{})
	e, err := engine.New(engine.Options{
		Store: s, Kinds: []onereply.Kind{k.Kind()}, Workers: lifeWorkers, Logger: slog.New(slog.DiscardHandler),
		Observer: onereply.ObserverFunc(func(step onereply.Step) {
			if step.Type == onereply.EventAccepted && ended.Add(1) == lives {
				close(all)
			}
		}),
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() { left <- e.Run(running) }()
	err = atOnce(lifeCallers, lives, func(n int) error {
		sub, err := k.Submission("bench", fmt.Sprint(n), ask{Text: sentence})
		if err != nil {
			return err
		}
		_, err = e.Submit(ctx, sub)
		return err
	})
	if err == nil {
		select {
		case <-all:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	stop()
	if run := <-left; err == nil {
		err = run
	}
	return err
}

// atOnce makes n calls from so many callers.
func atOnce(callers, n int, call func(n int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, callers)
	for range callers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := call(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

func lifePlain(ctx context.Context, path string) error {
	db, err := plainDB(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()
	p, err := prepare(ctx, db)
	if err != nil {
		return err
	}
	for range lives / lifeGroup {
		if err := p.group(ctx, db, lifeGroup); err != nil {
			return err
		}
	}
	return nil
}
