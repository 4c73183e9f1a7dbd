package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// call is one counted call: the onereply.Call that Work's send function sees.
type call struct {
	a      *attempt
	number int

	mu        sync.Mutex
	sent      bool
	seen      onereply.Observation
	usage     onereply.Usage
	operation string
}

// Send takes the call's one permission to send (P8).
func (c *call) Send() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent {
		return fmt.Errorf("%s call %d: a second request that can start work: %w", c.a.as.Guard, c.number, onereply.ErrUncounted)
	}
	c.sent = true
	return nil
}

// Checkpoint saves the operation id under the guard.
func (c *call) Checkpoint(ctx context.Context, operation string) error {
	c.a.alive()
	if _, err := c.a.record(ctx, store.Record{Op: store.Checkpoint, Operation: operation}); err != nil {
		return err
	}
	c.mu.Lock()
	c.operation = operation
	c.mu.Unlock()
	return nil
}

// Observe merges what was seen on the wire.
func (c *call) Observe(o onereply.Observation) {
	c.mu.Lock()
	c.seen = c.seen.Merge(o)
	c.mu.Unlock()
}

// Used replaces the tokens reported for this call.
func (c *call) Used(u onereply.Usage) {
	c.mu.Lock()
	c.usage = u
	c.mu.Unlock()
}

// Call counts one call durably, then sends it (P8), with no transaction open
// while the provider is waited for (P9).
func (a *attempt) Call(ctx context.Context, send func(context.Context, onereply.Call) error) error {
	c, err := a.count(ctx)
	if err != nil {
		return err
	}
	cctx, cancel := context.WithTimeoutCause(ctx, a.kind.Policy.CallTimeout, onereply.ErrCallTimeout)
	defer cancel()
	// The call ends with the assignment even where Work passes another context.
	cctx, end := context.WithCancelCause(cctx)
	defer end(nil)
	defer context.AfterFunc(a.ctx, func() { end(context.Cause(a.ctx)) })()
	started := time.Now()
	returned := false
	defer func() {
		if !returned { // send panicked: it may have sent
			_ = a.closeCall(c, errNoReturn, context.Cause(cctx), time.Since(started)) // the panic says more
		}
	}()
	err = send(cctx, c)
	returned = true
	return a.closeCall(c, err, context.Cause(cctx), time.Since(started))
}

var errNoReturn = errors.New("the function did not return")

// count makes the durable count of one call. It closes an earlier call in
// passing: one of this attempt whose end was not written yet, or an open one of
// a lost worker, whose outcome stays unknown.
func (a *attempt) count(ctx context.Context) (*call, error) {
	a.mu.Lock()
	if a.inCall {
		a.mu.Unlock()
		return nil, fmt.Errorf("%s: %w: a call is under way; an attempt makes one at a time", a.as.Guard, onereply.ErrInvalid)
	}
	closed := a.closed
	if (a.open != nil || a.unknown) && a.as.Task.Policy.OnUnknown == onereply.UnknownStop {
		a.mu.Unlock()
		return nil, onereply.UnknownOutcome(onereply.CodeProviderUnavailable, fmt.Errorf("%s: %w", a.as.Guard, onereply.ErrOutcomeUnknown))
	}
	if a.open != nil {
		closed = &store.ClosedCall{Number: a.open.Number, Class: onereply.ClassUnknown, Code: onereply.CodeProviderUnavailable}
	}
	a.inCall = true
	a.sign = time.Now()
	a.mu.Unlock()

	v, err := a.record(ctx, store.Record{Op: store.CountCall, Closed: closed})
	if err == nil && v.CallsExhausted {
		err = &onereply.CallError{Class: onereply.ClassNotSent, Code: a.callsCode(), Err: fmt.Errorf("%s: %w", a.as.Guard, onereply.ErrCallsExhausted)}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.inCall = false
		if !errors.Is(err, onereply.ErrFencedOut) && !errors.Is(err, onereply.ErrCallsExhausted) {
			err = &onereply.CallError{Class: onereply.ClassNotSent, Code: "internal", Err: err}
		}
		return nil, err
	}
	a.open, a.closed, a.unknown = nil, nil, false
	a.used = v.Call
	a.current = &call{a: a, number: v.Call}
	return a.current, nil
}

// callsCode is the last cause where a call could not be counted.
func (a *attempt) callsCode() string {
	if last := a.as.Task.Error; last != nil {
		return last.Code
	}
	return onereply.CodeProviderUnavailable
}

// closeCall classifies how the call ended. The class is written with the next
// guarded write; until then the call is open, which is the truth.
func (a *attempt) closeCall(c *call, err, cause error, took time.Duration) error {
	c.mu.Lock()
	seen, usage, operation := c.seen, c.usage, c.operation
	c.mu.Unlock()
	ended := onereply.Classify(err, seen, cause, a.now())
	closed := &store.ClosedCall{Number: c.number, Class: onereply.ClassAnswered, Requests: seen.Requests, Usage: usage}
	if ended != nil {
		closed.Class, closed.Code = ended.Class, ended.Failure().Code
	}
	a.mu.Lock()
	a.inCall, a.current, a.sign = false, nil, time.Now()
	a.unknown = closed.Class == onereply.ClassUnknown
	unresolved := closed.Class == onereply.ClassInterrupted ||
		closed.Class == onereply.ClassUnknown && !ended.Final && (operation != "" || context.Cause(a.ctx) != nil)
	if unresolved {
		// Whoever takes over, or this attempt itself, must know that it is open.
		a.open = &onereply.OpenCall{Number: c.number, Attempt: a.as.Guard.Attempt, Operation: operation}
	} else {
		a.closed = closed
	}
	a.mu.Unlock()
	a.e.o.Observer.Observe(onereply.Step{
		Type: onereply.EventCalled, Task: a.as.Task.ID, Kind: a.kind.Name, Version: a.as.Guard.Version,
		Attempt: a.as.Guard.Attempt, Worker: a.e.o.Name, Class: closed.Class, Usage: usage, Duration: took,
	})
	if ended == nil {
		return nil
	}
	return ended
}

// Resolve records what became of the open call.
func (a *attempt) Resolve(_ context.Context, r onereply.Resolution) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		return nil
	}
	a.closed = &store.ClosedCall{Number: a.open.Number, Class: r.Class, Code: r.Code, Usage: r.Usage}
	a.open = nil
	return nil
}
