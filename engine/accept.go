package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

type endItem struct {
	ctx    context.Context // for its values only; never for its end
	ending store.Ending
}

// finish carries out a decision: the guarded end of the assignment with the
// kind's Ended hook, in one transaction (P3, P4, P5). It tries again while the
// store cannot be reached or the hook fails, as long as the lease can still be
// good, because the candidate was paid for.
func (a *attempt) finish(out json.RawMessage, d onereply.Decision) {
	if d.Action == onereply.Drop {
		return
	}
	item := endItem{ctx: context.WithoutCancel(a.ctx), ending: a.endingFor(out, d)}
	backoff := onereply.Backoff{Base: 50 * time.Millisecond, Max: 2 * time.Second}
	for n := 1; ; n++ {
		v, err := a.e.ends.do(item.ctx, item)
		if err == nil {
			a.finished(item.ending, v)
			return
		}
		wait := backoff.Delay(n, a.e.o.Draw) + backoff.Base
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
	a.e.Nudge()
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
	err := e.store.InTx(ctx, func(ctx context.Context, tx onereply.Tx) (err error) {
		if verdicts, err = e.store.Finish(ctx, tx, entries); err != nil {
			return err
		}
		var ended []onereply.Task
		for _, v := range verdicts {
			if v.Refused == nil && v.Task != nil && v.Task.Status.Ended() {
				ended = append(ended, *v.Task)
			}
		}
		return e.runEnded(ctx, tx, ended)
	})
	return verdicts, err
}

func (e *Engine) runEnded(ctx context.Context, tx onereply.Tx, ended []onereply.Task) error {
	return e.byKind(ended, func(k onereply.Kind, tasks []onereply.Task) error {
		if k.Ended == nil {
			return nil
		}
		if err := k.Ended(ctx, tx, tasks); err != nil {
			return fmt.Errorf("ended hook of kind %s: %w", k.Name, err)
		}
		return nil
	})
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
