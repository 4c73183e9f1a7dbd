package engine

import (
	"context"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// settle is how long after a claim without a question the question follows, when
// is the next task due, unless something else has woken the loop by then.
const settle = 25 * time.Millisecond

// claimLoop hands due tasks to workers until ctx ends. It asks only while a
// worker is free, so nothing is claimed that nobody works on. It wakes on a
// nudge, a freed worker where it had claimed for all of them, the next moment the
// store knows of, and the poll, which is the truth behind all hints (P15).
// Attempts run under inner.
func (e *Engine) claimLoop(ctx, inner context.Context) {
	surely := false // something is due: submitted here, or left over by the last claim
	for ctx.Err() == nil {
		free := e.o.Workers - e.busy()
		wait, freed := e.o.Poll, signal(nil)
		if free > 0 {
			surely = e.fresh.Swap(false) || surely
			n, next, err := e.claimDue(ctx, inner, free, surely)
			surely = n == free
			switch {
			case err != nil && ctx.Err() == nil:
				e.log.Warn("claim failed; it is tried again", "error", err)
			case surely:
				continue // there may be more, and workers may be free again
			case next > 0:
				wait = min(wait, next)
			}
		} else {
			freed = e.freed
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-e.nudged:
		case <-freed:
		case <-t.C:
		}
		t.Stop()
	}
}

// claimDue claims at most free tasks and starts them. Unless something is surely
// due it first asks, reading only: an idle process writes nothing. It returns how
// many it started and how long until the next is due, as far as the store knows.
func (e *Engine) claimDue(ctx, inner context.Context, free int, surely bool) (int, time.Duration, error) {
	next := settle
	if !surely {
		due, err := e.store.Due(ctx, e.names)
		if err != nil {
			return 0, 0, err
		}
		if next = due.Wait; !due.Now {
			return 0, next, nil
		}
	}
	// From here on the claim goes through whatever becomes of ctx: what it hands
	// out must not be lost.
	cctx, cancel := context.WithTimeout(inner, flushTimeout)
	defer cancel()
	sent := time.Now()
	claimed, err := e.store.Claim(cctx, store.Claim{
		Worker: e.o.Name, Lease: e.o.Lease, Kinds: e.names,
		Limit: free, NewAttempt: e.o.IDs.NewAttempt,
	})
	if err != nil {
		return 0, 0, err
	}
	for _, as := range claimed.Assignments {
		e.start(inner, as, sent, ctx.Err() != nil)
	}
	return len(claimed.Assignments), next, nil
}

// start runs one assignment; one that came when the process was already going is
// released at once. sent is when the claim was sent: the lease is good
// for at least LeaseFor from then by this process's monotonic clock.
func (e *Engine) start(ctx context.Context, as store.Assignment, sent time.Time, going bool) {
	a := newAttempt(ctx, e, as, sent)
	if going {
		a.cancel(onereply.ErrDraining)
	}
	e.mu.Lock()
	e.running[as.Guard.Attempt] = a
	e.mu.Unlock()
	e.o.Observer.Observe(onereply.Step{
		Type: onereply.EventClaimed, Task: as.Task.ID, Kind: as.Task.Kind,
		Version: as.Guard.Version, Attempt: as.Guard.Attempt, Worker: e.o.Name,
	})
	e.hub.claimed(as.Task.ID, as.Guard.Version)
	go func() {
		a.run()
		e.mu.Lock()
		delete(e.running, as.Guard.Attempt)
		e.mu.Unlock()
		a.leave()
		e.freed.set()
	}()
}

func (e *Engine) busy() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running)
}

// attempts returns the running attempts.
func (e *Engine) attempts() []*attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*attempt, 0, len(e.running))
	for _, a := range e.running {
		all = append(all, a)
	}
	return all
}
