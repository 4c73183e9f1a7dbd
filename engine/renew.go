package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// renewLeases keeps the leases of this process's attempts until ctx ends. All
// of them travel in one statement. An attempt without a sign of life for its
// call timeout is not renewed. When the store cannot be reached renewals are
// tried faster. An attempt whose lease ends by this process's own monotonic
// clock loses its context: another worker may have it by then (P5, P16).
func (e *Engine) renewLeases(ctx context.Context) {
	wait := e.o.Renew
	for pause(ctx, wait) {
		wait = e.o.Renew
		if err := e.renewOnce(ctx); err != nil && ctx.Err() == nil {
			e.log.Warn("renewing leases failed; it is tried again", "error", err)
			wait = e.o.Renew / 8
		}
	}
}

func (e *Engine) renewOnce(ctx context.Context) error {
	var renewed []*attempt
	var records []store.Record
	sent := time.Now()
	for _, a := range e.attempts() {
		if !a.renewable(sent, e.o.Renew/2) {
			continue
		}
		renewed = append(renewed, a)
		records = append(records, store.Record{Guard: a.as.Guard, Op: store.Renew, Lease: e.o.Lease})
	}
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.o.Lease)
	defer cancel()
	verdicts, err := e.store.Record(ctx, records)
	if err != nil {
		return err
	}
	for i, v := range verdicts {
		a := renewed[i]
		if v.Refused != nil {
			a.lost(v.Refused)
			e.fencedOut(a, v.Refused)
			continue
		}
		a.leased(sent.Add(v.LeaseFor))
	}
	return nil
}

// renewable reports whether the lease should be renewed now: the attempt lives,
// has shown a sign of life, and its lease was not renewed just now.
func (a *attempt) renewable(now time.Time, fresh time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.as.Spent == "" && !a.ending && now.Sub(a.sign) > a.kind.Policy.CallTimeout {
		return false
	}
	if a.ctx.Err() != nil && !a.ending {
		return errors.Is(context.Cause(a.ctx), onereply.ErrDraining)
	}
	return a.leaseEnd.Sub(now) < a.e.o.Lease-fresh
}

// leased notes until when the lease is good by this process's clock, and has the
// attempt's context end then.
func (a *attempt) leased(until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaseEnd = until
	if a.expiry == nil {
		a.expiry = time.AfterFunc(time.Until(until), func() { a.cancel(onereply.ErrLeaseLost) })
		return
	}
	a.expiry.Reset(time.Until(until))
}

func (a *attempt) leaseEnds() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaseEnd
}

// checkCancelled asks, after something was committed elsewhere, whether tasks
// worked on here have ended there: a Stop pressed at another process reaches the
// call within a fraction of a second instead of at the next renewal.
func (e *Engine) checkCancelled(ctx context.Context) {
	const atMostEvery = 250 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.changed:
		}
		// A short task is over before anyone could stop it: attempts are looked at once
		// they have run for a while.
		all := e.attempts()
		running := slices.DeleteFunc(slices.Clone(all), func(a *attempt) bool { return time.Since(a.heard) < atMostEvery })
		if len(running) < len(all) {
			e.changed.set()
		}
		if len(running) > 0 {
			if err := e.endThoseEnded(ctx, running); err != nil && ctx.Err() == nil {
				e.log.Warn("looking for cancelled tasks failed; renewals find them", "error", err)
			}
		}
		if !pause(ctx, atMostEvery) {
			return
		}
	}
}

func (e *Engine) endThoseEnded(ctx context.Context, running []*attempt) error {
	byTask := make(map[onereply.TaskID][]*attempt, len(running))
	ids := make([]onereply.TaskID, 0, len(running))
	for _, a := range running {
		byTask[a.as.Task.ID] = append(byTask[a.as.Task.ID], a)
		ids = append(ids, a.as.Task.ID)
	}
	tasks, err := e.store.Tasks(ctx, store.Query{IDs: ids})
	if err != nil {
		return err
	}
	for i := range tasks {
		t := &tasks[i]
		for _, a := range byTask[t.ID] {
			switch {
			case t.Status == onereply.StatusCancelled:
				a.cancel(onereply.ErrCancelled)
			case t.Version != a.as.Guard.Version:
				a.cancel(onereply.ErrLeaseLost)
			}
		}
	}
	return nil
}

// cancelHere ends the context of a cancelled task's attempt, where it runs here.
func (e *Engine) cancelHere(id onereply.TaskID) {
	for _, a := range e.attempts() {
		if a.as.Task.ID == id {
			a.cancel(onereply.ErrCancelled)
		}
	}
}

// drain ends what runs once claiming has stopped: calls that another worker can
// recover are handed over at once, others get the grace, then they are
// interrupted and released.
func (e *Engine) drain(ctx context.Context) error {
	for _, a := range e.attempts() {
		if a.recoverable() {
			a.cancel(onereply.ErrDraining)
		}
	}
	if e.o.Drain > 0 && e.waitIdle(ctx, e.o.Drain) {
		return nil
	}
	for _, a := range e.attempts() {
		a.cancel(onereply.ErrDraining)
	}
	if e.waitIdle(ctx, stuckGrace+3*time.Second) {
		return nil
	}
	err := errors.New("drain")
	for _, a := range e.attempts() {
		err = fmt.Errorf("%w; still at work: %s", err, a.as.Guard)
	}
	return err
}

// waitIdle waits at most d for every attempt to leave.
func (e *Engine) waitIdle(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for _, a := range e.attempts() {
		select {
		case <-a.done:
		case <-ctx.Done():
			return e.busy() == 0
		}
	}
	return true
}
