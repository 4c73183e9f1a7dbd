package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onereply/onereply"
)

// pgStart measures from the call of Submit to the start of the attempt, with
// nothing else to do and with one submission every millisecond.
func pgStart(ctx context.Context, l *lab, runs int) ([]figure, error) {
	sides := []struct {
		name string
		open func(context.Context, *database, func(string)) (func(id string) error, func() error, error)
	}{
		{"onereply", productStarts},
		{"River, tuned", func(ctx context.Context, d *database, started func(string)) (func(string) error, func() error, error) {
			return riverStarts(ctx, d, started, true)
		}},
		{"River, defaults", func(ctx context.Context, d *database, started func(string)) (func(string) error, func() error, error) {
			return riverStarts(ctx, d, started, false)
		}},
	}
	var all []figure
	for _, pressing := range []struct {
		name  string
		n     int
		every time.Duration
	}{{"idle", 80, 37 * time.Millisecond}, {"one a millisecond", 2000, time.Millisecond}} {
		figures := make([]figure, 2*len(sides))
		for range runs {
			for i, s := range sides {
				took, err := startsOf(ctx, l, pressing.n, pressing.every, s.open)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", pressing.name, s.name, err)
				}
				for k, p := range []float64{50, 99} {
					f := &figures[2*i+k]
					f.Name, f.Unit = fmt.Sprintf("%s: %s, p%.0f", pressing.name, s.name, p), "ms"
					f.Values = append(f.Values, percentile(took, p))
				}
			}
		}
		all = append(all, figures...)
	}
	return all, nil
}

func startsOf(ctx context.Context, l *lab, n int, every time.Duration, open func(context.Context, *database, func(string)) (func(string) error, func() error, error)) (took []float64, err error) {
	d, err := l.database(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	started := newArrivals()
	press, stop, err := open(ctx, d, started.arrived)
	if err != nil {
		return nil, err
	}
	rest(ctx, 200*time.Millisecond)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	began := time.Now()
	took = make([]float64, n)
	for i := range n {
		rest(ctx, time.Until(began.Add(time.Duration(i)*every)))
		wg.Go(func() {
			id := ids.New()
			start := started.of(id)
			pressed := time.Now()
			err := press(id)
			if err == nil {
				err = within(ctx, start)
			}
			mu.Lock()
			defer mu.Unlock()
			took[i], failed = millis(time.Since(pressed)), errors.Join(failed, err)
		})
	}
	wg.Wait()
	return took[n/4:], errors.Join(failed, stop()) // the first quarter warms plans and caches up
}

func productStarts(ctx context.Context, d *database, started func(string)) (func(string) error, func() error, error) {
	k := pgKind(true, true)
	k.Work = func(_ context.Context, a onereply.Attempt, _ ask) (answer, error) {
		started(string(a.Assignment().Task.ID))
		return answer{Text: sentence}, nil
	}
	p, err := product(ctx, d, k, 100, nil)
	if err != nil {
		return nil, nil, err
	}
	p.run(ctx)
	return func(id string) error {
		sub, err := p.press(id)
		if err != nil {
			return err
		}
		sub.TaskID = onereply.TaskID(id)
		_, err = p.engine.Submit(ctx, sub)
		return err
	}, p.close, nil
}

func riverStarts(ctx context.Context, d *database, started func(string), tuned bool) (func(string) error, func() error, error) {
	client, err := riverOn(ctx, d, &riverWorker{row: true, started: started}, 100, tuned)
	if err != nil {
		return nil, nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, nil, err
	}
	return func(id string) error { return riverPress(ctx, d, client, id) }, func() error { return stopRiver(ctx, client) }, nil
}
