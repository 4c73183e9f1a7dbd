package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

const busyTime = 5 * time.Second

// childBusy submits until it is told to stop.
func childBusy(ctx context.Context, file string) error {
	s, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("listening on nothing")
	_, err = load(ctx, s, "other")
	return err
}

// load submits from sixteen callers until the context ends, and says how many
// a second.
func load(ctx context.Context, s *sqlite.Store, name string) (float64, error) {
	k := kind(true, false)
	e, err := engine.New(engine.Options{Store: s, Kinds: []onereply.Kind{k.Kind()}, Workers: -1})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	var done atomic.Int64
	_, err = pace(callers, time.Hour, func(caller, n int) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sub, err := k.Submission("bench", fmt.Sprintf("%s-%d-%d", name, caller, n), ask{Text: sentence})
		if err != nil {
			return err
		}
		if _, err = e.Submit(ctx, sub); err == nil {
			done.Add(1)
		}
		return err
	})
	if ctx.Err() != nil {
		err = nil
	}
	return float64(done.Load()) / time.Since(began).Seconds(), err
}

// twoProcesses measures how long a small write and a renewal wait while both
// processes are busy.
func twoProcesses(ctx context.Context, l *lab, runs int) ([]figure, error) {
	small50, small99 := figure{Name: "small write p50", Unit: "ms"}, figure{Name: "small write p99", Unit: "ms"}
	renew50, renew99 := figure{Name: "renewal p50", Unit: "ms"}, figure{Name: "renewal p99", Unit: "ms"}
	rate := figure{Name: "submissions of this process meanwhile", Unit: "/s"}
	for range runs {
		small, renewals, submitted, err := busyOnce(ctx, l)
		if err != nil {
			return nil, err
		}
		small50.Values, small99.Values = append(small50.Values, percentile(small, 50)), append(small99.Values, percentile(small, 99))
		renew50.Values, renew99.Values = append(renew50.Values, percentile(renewals, 50)), append(renew99.Values, percentile(renewals, 99))
		rate.Values = append(rate.Values, submitted)
	}
	return []figure{small50, small99, renew50, renew99, rate}, nil
}

func busyOnce(ctx context.Context, l *lab) (small, renewals []float64, rate float64, err error) {
	file := l.file()
	s, err := open(ctx, file)
	if err != nil {
		return nil, nil, 0, err
	}
	defer s.Close()
	guard, err := claimOne(ctx, s)
	if err != nil {
		return nil, nil, 0, err
	}
	other, err := l.child(ctx, "busy", file)
	if err != nil {
		return nil, nil, 0, err
	}
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	type loadResult struct {
		rate float64
		err  error
	}
	ended := make(chan loadResult, 1)
	go func() {
		r, err := load(loaded, s, "this")
		ended <- loadResult{r, err}
	}()
	rest(ctx, 500*time.Millisecond)
	for n, began := 0, time.Now(); time.Since(began) < busyTime; n++ {
		write := func(ctx context.Context, tx onereply.Tx) error {
			_, err := sqlite.Unwrap(tx).ExecContext(ctx, insertNote, fmt.Sprint("probe ", n), "user", "x")
			return err
		}
		took, err := timed(func() error { return s.InTx(ctx, write) })
		if err != nil {
			return nil, nil, 0, err
		}
		small = append(small, took)
		took, err = timed(func() error { return renew(ctx, s, guard) })
		if err != nil {
			return nil, nil, 0, err
		}
		renewals = append(renewals, took)
		rest(ctx, 3*time.Millisecond)
	}
	stop()
	r := <-ended
	return small, renewals, r.rate, errors.Join(r.err, other.stop())
}

func timed(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return millis(time.Since(began)), err
}

// claimOne submits a task and claims it for an hour.
func claimOne(ctx context.Context, s *sqlite.Store) (onereply.Guard, error) {
	k := kind(false, false)
	e, err := engine.New(engine.Options{Store: s, Kinds: []onereply.Kind{k.Kind()}, Workers: -1})
	if err != nil {
		return onereply.Guard{}, err
	}
	sub, err := k.Submission("bench", "claimed", ask{Text: sentence})
	if err != nil {
		return onereply.Guard{}, err
	}
	if _, err := e.Submit(ctx, sub); err != nil {
		return onereply.Guard{}, err
	}
	claimed, err := s.Claim(ctx, store.Claim{
		Worker: "bench", Lease: time.Hour, Kinds: []string{"note"}, Limit: 1, NewAttempt: ids.NewAttempt,
	})
	if err != nil || len(claimed.Assignments) != 1 {
		return onereply.Guard{}, fmt.Errorf("claimed %d tasks: %w", len(claimed.Assignments), err)
	}
	return claimed.Assignments[0].Guard, nil
}

func renew(ctx context.Context, s *sqlite.Store, g onereply.Guard) error {
	verdicts, err := s.Record(ctx, []store.Record{{Guard: g, Op: store.Renew, Lease: time.Hour}})
	if err == nil && verdicts[0].Refused != nil {
		err = verdicts[0].Refused
	}
	return err
}
