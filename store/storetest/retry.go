package storetest

import (
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func retryCases() []Case {
	return []Case{
		{"retry puts the task back, due after the delay", retryDelay},
		{"retry leaves an open call open, and closes the one it names", retryKeeps},
		{"release puts the task back at once and keeps the open call", releaseKeeps},
		{"release closes the call that it names", releaseCloses},
		{"fail ends the task with reason and last cause", failEnds},
		{"fail without a cause keeps the last one", failKeeps},
	}
}

func retryDelay(e *Env) {
	a := e.running()
	e.Advance(time.Second)
	got := e.done(retry(a.Guard, 7*time.Second))
	want := a.Task
	want.Status, want.LeaseUntil, want.RunAt = onereply.StatusQueued, time.Time{}, e.Now().Add(7*time.Second)
	want.Error = &onereply.Failure{Code: "rate_limited", Message: "slow down"}
	same(e, "task", got, want)
	want.Attempts = []onereply.AttemptRecord{{
		ID: a.Guard.Attempt, Version: 1, Worker: "worker-1", StartedAt: e.Now().Add(-time.Second), EndedAt: e.Now(),
		Outcome: onereply.OutcomeRetried, Error: want.Error,
	}}
	same(e, "the task on reading", e.whole(a.Task.ID), want)
	e.Advance(7*time.Second - time.Millisecond)
	same(e, "assignments 1ms before", len(e.claims()), 0)
	e.Advance(time.Millisecond)
	next := e.claim(a.Task.ID)
	same(e, "version", next.Guard.Version, int64(2))
	same(e, "took", next.Took, false)
	done := e.done(accept(next.Guard, `{}`))
	if done.Error != nil {
		e.Errorf("a completed task carries an error: %+v", done.Error)
	}
}

func retryKeeps(e *Env) {
	a := e.called()
	e.done(retry(a.Guard, 0))
	next := e.claim(a.Task.ID)
	same(e, "open call", next.OpenCall, &onereply.OpenCall{Number: 1, Attempt: a.Guard.Attempt, Operation: "resp_1"})
	same(e, "class while it is open", e.events(a.Task.ID, onereply.EventCalled)[0].Code, "")
	e.record(store.Record{Guard: next.Guard, Op: store.CountCall})
	same(e, "class once another call follows it", e.events(a.Task.ID, onereply.EventCalled)[0].Code, "unknown")
	end := retry(next.Guard, 0)
	end.Closed = &store.ClosedCall{Number: 2, Class: onereply.ClassRefusedTemporary, Code: "rate_limited"}
	e.done(end)
	same(e, "class given", e.events(a.Task.ID, onereply.EventCalled)[1].Code, "refused_temporary")
	if last := e.claim(a.Task.ID); last.OpenCall != nil {
		e.Errorf("open call after a retry that closed it: %+v", last.OpenCall)
	}
}

func releaseKeeps(e *Env) {
	a := e.called()
	e.Advance(time.Second)
	got := e.done(release(a.Guard))
	same(e, "status", got.Status, onereply.StatusQueued)
	same(e, "run at", got.RunAt, e.Now())
	same(e, "lease", got.LeaseUntil, time.Time{})
	same(e, "attempt stays counted", got.Budget.Attempts.Used, 1)
	next := e.claim(a.Task.ID)
	same(e, "open call", next.OpenCall, &onereply.OpenCall{Number: 1, Attempt: a.Guard.Attempt, Operation: "resp_1"})
	same(e, "took", next.Took, false)
	same(e, "outcome", e.whole(a.Task.ID).Attempts[0].Outcome, onereply.OutcomeInterrupted)
}

func releaseCloses(e *Env) {
	a := e.called()
	end := release(a.Guard)
	end.Closed = &store.ClosedCall{Number: 1, Class: onereply.ClassNotSent}
	e.done(end)
	if next := e.claim(a.Task.ID); next.OpenCall != nil {
		e.Errorf("open call: %+v, want none", next.OpenCall)
	}
	same(e, "class", e.events(a.Task.ID, onereply.EventCalled)[0].Code, "not_sent")
}

func failEnds(e *Env) {
	a := e.called()
	got := e.done(fail(a.Guard))
	want := a.Task
	want.Status, want.Reason, want.LeaseUntil, want.EndedAt = onereply.StatusFailed, onereply.ReasonPermanent, time.Time{}, e.Now()
	want.Error = &onereply.Failure{Code: "content_filtered", Message: "stopped"}
	want.Budget.Calls.Used = 1
	same(e, "task", got, want)
	same(e, "outcome", e.whole(a.Task.ID).Attempts[0].Outcome, onereply.OutcomeFailed)
	same(e, "class of the open call", e.events(a.Task.ID, onereply.EventCalled)[0].Code, "unknown")
	e.Advance(time.Hour)
	same(e, "assignments afterwards", len(e.claims()), 0)
}

func failKeeps(e *Env) {
	a := e.running(func(s *store.Submission) { s.Attempts = 1 })
	e.done(retry(a.Guard, 0))
	spent := e.claim(a.Task.ID)
	end := fail(spent.Guard)
	end.Reason, end.Failure = spent.Spent, nil
	got := e.done(end)
	same(e, "reason", got.Reason, onereply.ReasonAttemptsExhausted)
	same(e, "last cause", got.Error, &onereply.Failure{Code: "rate_limited", Message: "slow down"})
}
