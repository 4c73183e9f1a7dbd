package onereplytest

import (
	"context"
	"time"
)

// Point is a moment in the life of an attempt at which its process can be held.
type Point string

// The points, in the order in which an attempt meets them.
const (
	// Claimed: the assignment is durable, and Work is about to run.
	Claimed Point = "claimed"
	// Counted: a call is counted durably, and nothing of it was sent.
	Counted Point = "counted"
	// InCall: the provider has the request. Work that calls no model through
	// [World.Provider] never comes here.
	InCall Point = "in the call"
	// Answered: Work has returned its candidate, and the engine does not have it yet.
	Answered Point = "answered"
	// Accepting: a transaction of the process is about to begin: in a process
	// that only works, the one that ends the assignment.
	Accepting Point = "accepting"
	// Accepted: that transaction has committed, and the engine does not know.
	Accepted Point = "accepted"
)

// Hold stops the first goroutine of a process that reaches a point.
type Hold struct {
	p        *Process
	point    Point
	reached  chan struct{}
	released chan struct{}
}

// HoldAt makes the process's next goroutine that reaches the point wait there
// until [Hold.Release]. A hold in a call ends with the call's context too, as a
// real model's silence does.
func (p *Process) HoldAt(point Point) *Hold {
	h := &Hold{p: p, point: point, reached: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds[point] = h
	p.all = append(p.all, h)
	return h
}

// Wait waits until someone is held, for a virtual hour at most, and reports
// whether someone is.
func (h *Hold) Wait() bool { return h.within(time.Hour) }

func (h *Hold) within(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-h.reached:
		return true
	case <-timer.C:
		return false
	}
}

// Release lets the one that is held go on, and the next one pass.
func (h *Hold) Release() {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.p.holds[h.point] == h {
		delete(h.p.holds, h.point)
	}
	select {
	case <-h.released:
	default:
		close(h.released)
	}
}

// at is called by the goroutine that is at the point. The context ends a wait in
// a call and no other.
func (p *Process) at(ctx context.Context, point Point) error {
	p.mu.Lock()
	h := p.holds[point]
	delete(p.holds, point)
	p.mu.Unlock()
	if h != nil {
		close(h.reached)
		var ended <-chan struct{}
		if point == InCall {
			ended = ctx.Done()
		}
		select {
		case <-h.released:
		case <-ended:
		case <-p.w.over:
		}
	}
	return p.pass()
}
