package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

type endItem struct {
	ctx    context.Context // for its values only; never for its end
	ending store.Ending
}

// hookPatience is how long an Ended hook that fails is tried again with the same
// candidate before the task is put back.
const hookPatience = 20 * time.Second

// finish carries out a decision: the guarded end of the assignment with the
// kind's Ended hook, in one transaction (P3, P4, P5). It tries again while the
// store cannot be reached or the hook fails, as long as the lease can still be
// good, because the candidate was paid for. A hook that goes on failing has the
// task put back with the hook's error as its last cause, so that the task shows
// what keeps it from ending.
func (a *attempt) finish(out json.RawMessage, d onereply.Decision) {
	if d.Action == onereply.Drop {
		return
	}
	item := endItem{ctx: context.WithoutCancel(a.ctx), ending: a.endingFor(out, d)}
	backoff := onereply.Backoff{Base: 50 * time.Millisecond, Max: 2 * time.Second}
	began := time.Now()
	for n := 1; ; n++ {
		v, err := a.e.ends.do(item.ctx, item)
		if err == nil {
			a.finished(item.ending, v)
			return
		}
		wait := backoff.Delay(n, a.e.o.Draw) + backoff.Base
		var refused *hookError
		if errors.As(err, &refused) && item.ending.Op != store.Retry {
			patience := min(hookPatience, a.leaseEnds().Sub(began)/2)
			if time.Since(began)+wait > patience {
				a.e.log.Error("an ended hook keeps failing; its task is put back",
					"task", a.as.Task.ID, "version", a.as.Guard.Version, "attempt", a.as.Guard.Attempt, "error", err)
				item.ending = a.putBack(item.ending)
				continue
			}
		}
		if time.Now().Add(wait).After(a.leaseEnds()) {
			a.e.log.Error("giving up ending an assignment; it is taken over when its lease ends",
				"op", d.Action, "task", a.as.Task.ID, "version", a.as.Guard.Version, "attempt", a.as.Guard.Attempt, "error", err)
			return
		}
		a.e.log.Warn("ending an assignment failed; it is tried again", "op", d.Action, "task", a.as.Task.ID, "error", err)
		pause(item.ctx, wait)
	}
}

// endingFor is the store's form of a decision, with the call that ended closed in
// passing. A released attempt leaves an open call open for whoever takes over.
func (a *attempt) endingFor(out json.RawMessage, d onereply.Decision) store.Ending {
	a.mu.Lock()
	closed := a.closed
	a.mu.Unlock()
	end := store.Ending{Guard: a.as.Guard, Outcome: d.Outcome, Failure: d.Failure, Closed: closed}
	switch d.Action {
	case onereply.Accept:
		end.Op, end.Response = store.Accept, out
	case onereply.Fail:
		end.Op, end.Reason = store.Fail, d.Reason
	case onereply.Retry:
		end.Op, end.Delay = store.Retry, d.Delay
	default:
		end.Op = store.Release
	}
	return end
}

// putBack is the ending of a task whose end the application's hook refuses. The
// wait grows with the attempts, so that a task that cannot end costs little.
func (a *attempt) putBack(end store.Ending) store.Ending {
	return store.Ending{
		Guard: end.Guard, Op: store.Retry, Outcome: onereply.OutcomeRetried, Closed: end.Closed,
		Failure: &onereply.Failure{Code: "hook_failed", Message: "the application's rows for the end could not be written; the log of the worker says why"},
		Delay:   a.kind.Policy.Backoff.Delay(int(a.as.Guard.Version), a.e.o.Draw),
	}
}

// finished tells the observer, the streams and the claim loop.
func (a *attempt) finished(end store.Ending, v store.Verdict) {
	if v.Refused != nil {
		a.e.fencedOut(a, v.Refused)
		a.e.hub.dirty()
		return
	}
	step := onereply.Step{
		Task: a.as.Task.ID, Kind: a.kind.Name, Version: a.as.Guard.Version,
		Attempt: a.as.Guard.Attempt, Worker: a.e.o.Name, Reason: end.Reason,
		Type: map[store.EndingOp]onereply.EventType{
			store.Accept: onereply.EventAccepted, store.Fail: onereply.EventFailed,
			store.Retry: onereply.EventRetried, store.Release: onereply.EventReleased,
		}[end.Op],
	}
	if end.Closed != nil {
		step.Usage = end.Closed.Usage
	}
	if v.Task != nil && !v.Task.EndedAt.IsZero() {
		step.Duration = v.Task.EndedAt.Sub(v.Task.CreatedAt)
	}
	a.e.o.Observer.Observe(step)
	a.e.hub.dirty()
	if end.Op == store.Retry || end.Op == store.Release {
		a.e.nudged.set() // when it is due must be asked
	}
}

// flushEnds ends a batch of assignments in one transaction; when a hook or a row
// fails they are done one by one, so that each fails alone.
func (e *Engine) flushEnds(items []endItem) []result[store.Verdict] {
	verdicts, err := e.tryEnds(items)
	results := make([]result[store.Verdict], len(items))
	for i, item := range items {
		switch {
		case err == nil:
			results[i].value = verdicts[i]
		case len(items) == 1:
			results[i] = e.afterFailedEnd(item, err)
		default:
			one, alone := e.tryEnds([]endItem{item})
			if alone != nil {
				results[i] = e.afterFailedEnd(item, alone)
				continue
			}
			results[i].value = one[0]
		}
	}
	return results
}

func (e *Engine) tryEnds(items []endItem) ([]store.Verdict, error) {
	ctx, cancel := context.WithTimeout(items[0].ctx, flushTimeout)
	defer cancel()
	entries := make([]store.Ending, len(items))
	for i, item := range items {
		entries[i] = item.ending
	}
	var verdicts []store.Verdict
	err := e.InTx(ctx, func(ctx context.Context, tx onereply.Tx) (err error) {
		if verdicts, err = e.store.Finish(ctx, tx, entries); err != nil {
			return err
		}
		var ended []onereply.Task
		for _, v := range verdicts {
			if v.Refused == nil && v.Task != nil && v.Task.Status.Ended() {
				ended = append(ended, *v.Task)
			}
		}
		return e.runEnded(inside(ctx), tx, ended)
	})
	return verdicts, err
}

func (e *Engine) runEnded(ctx context.Context, tx onereply.Tx, ended []onereply.Task) error {
	return e.byKind(ended, func(k onereply.Kind, tasks []onereply.Task) error {
		if k.Ended == nil {
			return nil
		}
		err := e.hook("ended", k.Name, func() error { return k.Ended(ctx, tx, tasks) })
		if err != nil {
			return &hookError{kind: k.Name, err: err}
		}
		return nil
	})
}

// hookError is an Ended hook's failure: the database was there, and the
// application's own rows were refused.
type hookError struct {
	kind string
	err  error
}

func (e *hookError) Error() string { return fmt.Sprintf("ended hook of kind %s: %v", e.kind, e.err) }
func (e *hookError) Unwrap() error { return e.err }

// hook runs a hook of the application's. A panic in it is its error, whoever
// runs it: it must take down neither a worker nor the caller of Cancel.
func (e *Engine) hook(name, kind string, run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a hook panicked", "hook", name, "kind", kind, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s hook of kind %s panicked: %v", name, kind, p)
		}
	}()
	return run()
}

// afterFailedEnd reads the task when the commit's answer was lost, before anyone
// ends it again (P11): if it stands as this ending would leave it, it was ours.
func (e *Engine) afterFailedEnd(item endItem, err error) result[store.Verdict] {
	if !errors.Is(err, onereply.ErrCommitUnknown) {
		return result[store.Verdict]{err: err}
	}
	ctx, cancel := context.WithTimeout(item.ctx, flushTimeout)
	defer cancel()
	tasks, readErr := e.store.Tasks(ctx, store.Query{IDs: []onereply.TaskID{item.ending.Guard.Task}, Whole: true})
	if readErr != nil || len(tasks) == 0 {
		return result[store.Verdict]{err: errors.Join(err, readErr)}
	}
	t := tasks[0]
	for _, a := range t.Attempts {
		if a.ID == item.ending.Guard.Attempt && a.Outcome == item.ending.Outcome {
			return result[store.Verdict]{value: store.Verdict{Task: &t}}
		}
	}
	return result[store.Verdict]{err: err}
}
