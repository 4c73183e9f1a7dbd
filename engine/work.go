package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// stuckGrace is how long an interrupted attempt may take to return before the
// engine ends its assignment without it.
const stuckGrace = 2 * time.Second

// attempt is one execution under one assignment: what the engine knows of it,
// and the onereply.Attempt that Work sees.
type attempt struct {
	e    *Engine
	kind onereply.Kind
	as   store.Assignment

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has left

	heard time.Time // when the claim's answer had come, by this process's clock

	mu       sync.Mutex
	leaseEnd time.Time // by this process's clock; the database's may be later, never earlier
	expiry   *time.Timer
	sign     time.Time // the last sign of life
	ending   bool      // Work has returned; what follows needs the lease as long as it takes
	used     int       // calls counted on the task
	inCall   bool
	current  *call              // the call under way
	unknown  bool               // the last call's outcome is not known
	open     *onereply.OpenCall // a call that is open, which whoever takes over must know
	closed   *store.ClosedCall  // a call whose end is not written yet; it travels with the next write
	text     draftBuffer
}

func newAttempt(ctx context.Context, e *Engine, as store.Assignment, sent time.Time) *attempt {
	a := &attempt{
		e: e, kind: e.kinds[as.Task.Kind], as: as, done: make(chan struct{}),
		heard: time.Now(), sign: sent,
		used: as.Task.Budget.Calls.Used, open: as.OpenCall,
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.leased(sent.Add(as.LeaseFor))
	return a
}

// run works and ends the assignment. It returns when the end is durable or the
// assignment is no longer ours to end.
func (a *attempt) run() {
	if a.as.Spent != "" {
		a.finish(nil, onereply.Decision{
			Action: onereply.Fail, Outcome: onereply.OutcomeFailed,
			Reason: a.as.Spent, Failure: a.lastCause(string(a.as.Spent)),
		})
		return
	}
	if a.open != nil && a.open.Operation == "" && a.as.Task.Policy.OnUnknown == onereply.UnknownStop {
		// The worker that made the call was lost, nothing can recover it, and the
		// policy is to stop: an unknown outcome is never "it did not happen" (P10).
		a.finish(nil, onereply.Decision{
			Action: onereply.Fail, Outcome: onereply.OutcomeUnknown, Reason: onereply.ReasonOutcomeUnknown,
			Failure: &onereply.Failure{Code: onereply.CodeProviderUnavailable, Message: "the worker was lost in the middle of a call; whether it was answered is not known"},
		})
		return
	}
	out, err := a.work()
	a.mu.Lock()
	a.ending = true
	a.mu.Unlock()
	d := a.decide(err)
	a.tell(err, d)
	a.finish(out, d)
}

// tell logs why an attempt did not produce an answer, with the whole cause: the
// task itself shows a short one that is fit for everyone.
func (a *attempt) tell(err error, d onereply.Decision) {
	level := slog.LevelInfo
	switch d.Action {
	case onereply.Fail:
		level = slog.LevelWarn
	case onereply.Retry, onereply.Release:
	default:
		return
	}
	a.e.log.Log(a.ctx, level, "an attempt ended without an answer", "decision", d.Action, "reason", d.Reason, "delay", d.Delay,
		"kind", a.kind.Name, "task", a.as.Task.ID, "version", a.as.Guard.Version, "error", err)
}

func (a *attempt) lastCause(code string) *onereply.Failure {
	if last := a.as.Task.Error; last != nil {
		return last
	}
	return &onereply.Failure{Code: code, Message: "the task's budget was used up before another attempt could start"}
}

type worked struct {
	out json.RawMessage
	err error
}

// work runs the kind's Work and waits for it, though not for ever once the
// attempt was interrupted.
func (a *attempt) work() (json.RawMessage, error) {
	result := make(chan worked, 1)
	go func() {
		said := worked{err: errNoReturn} // unless it returns: it panicked, or ended its goroutine
		defer func() {
			if p := recover(); p != nil {
				said.err = fmt.Errorf("work panicked: %v", p)
				a.e.log.Error("work panicked", "kind", a.kind.Name, "task", a.as.Task.ID, "panic", p, "stack", string(debug.Stack()))
			}
			result <- said
		}()
		out, err := a.kind.Work(a.ctx, a)
		if err == nil && !json.Valid(out) {
			err = onereply.RefusedPermanent("invalid_response", fmt.Errorf("response of kind %s is no JSON", a.kind.Name))
		}
		said = worked{out, err}
	}()
	select {
	case r := <-result:
		return r.out, r.err
	case <-a.ctx.Done():
	}
	t := time.NewTimer(stuckGrace)
	defer t.Stop()
	select {
	case r := <-result:
		return r.out, r.err
	case <-t.C:
	}
	cause := context.Cause(a.ctx)
	if errors.Is(cause, onereply.ErrDraining) {
		// The process is going: give the task back without waiting for Work.
		a.e.log.Error("work ignores its context; its task is released without it", "kind", a.kind.Name, "task", a.as.Task.ID)
		return nil, &onereply.CallError{Class: onereply.ClassInterrupted, Err: cause}
	}
	r := <-result
	return r.out, r.err
}

// unclassified wraps an error that Work did not classify: while a call was under
// way, or when the last one's outcome is not known, it may have run; otherwise
// nothing was sent.
func (a *attempt) unclassified(code string, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inCall || a.unknown {
		return onereply.UnknownOutcome(code, err)
	}
	return onereply.NotSent(code, err)
}

// decide says what follows the end of Work.
func (a *attempt) decide(err error) onereply.Decision {
	a.mu.Lock()
	budget := a.as.Task.Budget
	budget.Calls.Used = a.used
	recoverable := a.open != nil && a.open.Operation != ""
	a.mu.Unlock()
	s := onereply.Situation{
		Cause: context.Cause(a.ctx), Budget: budget, Rules: a.as.Task.Policy,
		Policy: a.kind.Policy, Now: a.now(), Draw: a.e.o.Draw, Recoverable: recoverable,
	}
	if err != nil {
		s.Err = a.classified(err)
		if errors.Is(err, onereply.ErrFencedOut) && s.Cause == nil {
			s.Cause = onereply.ErrLeaseLost
		}
	}
	return onereply.Decide(s)
}

// classified gives err a class. What a call ended with has one already.
func (a *attempt) classified(err error) *onereply.CallError {
	var own *onereply.CallError
	if errors.As(err, &own) {
		return own
	}
	if cause := context.Cause(a.ctx); cause != nil || errors.Is(err, onereply.ErrFencedOut) {
		return &onereply.CallError{Class: onereply.ClassInterrupted, Err: err}
	}
	e := a.unclassified("internal", err)
	errors.As(e, &own)
	own.Message = "an internal error; the log of the worker says more" // err may hold what is nobody's business
	return own
}

// now estimates the database's time from the claim's reading and the monotonic
// time since its answer came, so it is never ahead: a call that may follow at a
// moment the provider named does not come before it. It only places a retry;
// every guard reads the real one.
func (a *attempt) now() time.Time {
	return a.as.Task.LeaseUntil.Add(-a.as.LeaseFor).Add(time.Since(a.heard))
}

// lost ends the attempt's context after a refused write.
func (a *attempt) lost(r *onereply.Refusal) {
	if r.Why == onereply.WhyCancelled {
		a.cancel(onereply.ErrCancelled)
		return
	}
	a.cancel(onereply.ErrLeaseLost)
}

// leave releases what the attempt holds once it has ended.
func (a *attempt) leave() {
	a.mu.Lock()
	a.expiry.Stop()
	a.mu.Unlock()
	a.cancel(nil)
	close(a.done)
}

// alive notes a sign of life.
func (a *attempt) alive() {
	a.mu.Lock()
	a.sign = time.Now()
	a.mu.Unlock()
}

// recoverable reports whether the call under way has saved an operation id, so
// that another worker can pick it up without paying again.
func (a *attempt) recoverable() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current != nil && a.current.operation != "" || a.current == nil && a.open != nil && a.open.Operation != ""
}

// Assignment returns what was assigned.
func (a *attempt) Assignment() onereply.Assignment { return a.as.Assignment }

// Progress saves state for whoever takes over.
func (a *attempt) Progress(ctx context.Context, state []byte) error {
	a.alive()
	_, err := a.record(ctx, store.Record{Op: store.Progress, State: state})
	return err
}

// record makes one guarded write and ends the attempt when it is refused.
func (a *attempt) record(ctx context.Context, r store.Record) (store.Verdict, error) {
	r.Guard = a.as.Guard
	v, err := a.e.records.do(ctx, recordItem{ctx: ctx, r: r})
	if err != nil {
		return v, fmt.Errorf("%s: %w", a.as.Guard, err)
	}
	if v.Refused != nil {
		a.lost(v.Refused)
		a.e.fencedOut(a, v.Refused)
		return v, v.Refused
	}
	return v, nil
}

type recordItem struct {
	ctx context.Context // for its values only; never for its end
	r   store.Record
}

func (e *Engine) flushRecords(items []recordItem) []result[store.Verdict] {
	// The callers' contexts do not end a shared write.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(items[0].ctx), flushTimeout)
	defer cancel()
	records := make([]store.Record, len(items))
	for i, item := range items {
		records[i] = item.r
	}
	verdicts, err := e.store.Record(ctx, records)
	if err != nil {
		return failAll[store.Verdict](len(records), err)
	}
	results := make([]result[store.Verdict], len(verdicts))
	for i, v := range verdicts {
		results[i].value = v
	}
	return results
}

func (e *Engine) fencedOut(a *attempt, r *onereply.Refusal) {
	if r.OwnEnd() {
		return
	}
	e.o.Observer.Observe(onereply.Step{
		Type: onereply.EventFencedOut, Task: a.as.Task.ID, Kind: a.kind.Name,
		Version: a.as.Guard.Version, Attempt: a.as.Guard.Attempt, Worker: e.o.Name, Why: r.Why,
	})
}
