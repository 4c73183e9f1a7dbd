package storetest

import (
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func budgetCases() []Case {
	return []Case{
		{"budget of attempts used up hands the task out as spent, to be failed", budgetAttempts},
		{"budget of elapsed time over hands the task out as spent", budgetElapsed},
		{"budget of a deadline over hands the task out as spent", budgetDeadline},
		{"budget caps the lease at the deadline and at the end of elapsed time", budgetCaps},
		{"budget of calls used up still lets a takeover recover", budgetCalls},
		{"budget spent, its assignment is fenced like any other", budgetSpentGuard},
	}
}

func budgetAttempts(e *Env) {
	t := e.created(func(s *store.Submission) { s.Attempts = 2 })
	first := e.claim(t.ID)
	e.Advance(lease)
	second := e.claim(t.ID)
	same(e, "second attempt", second.Spent, onereply.Reason(""))
	e.Advance(lease)
	spent := e.claim(t.ID)
	same(e, "reason", spent.Spent, onereply.ReasonAttemptsExhausted)
	same(e, "version", spent.Guard.Version, int64(3))
	same(e, "lease", spent.LeaseFor, lease)
	same(e, "attempts used", spent.Task.Budget.Attempts, onereply.Bound{Used: 2, Max: 2})
	e.refused("the second attempt's accept", e.finish(accept(second.Guard, `{}`)), onereply.WhyTakenOver)
	end := fail(spent.Guard)
	end.Reason, end.Failure = spent.Spent, nil
	got := e.done(end)
	same(e, "status", got.Status, onereply.StatusFailed)
	same(e, "reason of the task", got.Reason, onereply.ReasonAttemptsExhausted)
	read := e.whole(t.ID)
	same(e, "attempts recorded", len(read.Attempts), 2)
	same(e, "outcome of the first", read.Attempts[0].Outcome, onereply.OutcomeLeaseExpired)
	same(e, "id of the first", read.Attempts[0].ID, first.Guard.Attempt)
}

func budgetElapsed(e *Env) {
	t := e.created(func(s *store.Submission) { s.Elapsed = time.Minute })
	e.Advance(time.Minute - time.Millisecond)
	a := e.claim(t.ID)
	same(e, "spent 1ms before", a.Spent, onereply.Reason(""))
	same(e, "lease 1ms before", a.LeaseFor, time.Millisecond)
	e.Advance(time.Millisecond)
	b := e.claim(t.ID)
	same(e, "spent when over", b.Spent, onereply.ReasonElapsedExhausted)
	same(e, "lease when over", b.LeaseFor, lease)
	same(e, "attempts used", b.Task.Budget.Attempts.Used, 1)
}

func budgetDeadline(e *Env) {
	t := e.created(func(s *store.Submission) { s.Deadline, s.Delay = e.Now().Add(time.Minute), time.Second })
	e.Advance(time.Minute)
	a := e.claim(t.ID)
	same(e, "reason", a.Spent, onereply.ReasonDeadlineExceeded)
	same(e, "took", a.Took, false)
	end := fail(a.Guard)
	end.Reason = a.Spent
	same(e, "reason of the task", e.done(end).Reason, onereply.ReasonDeadlineExceeded)
	same(e, "attempts recorded", len(e.whole(t.ID).Attempts), 0)
}

func budgetCaps(e *Env) {
	a := e.running(func(s *store.Submission) { s.Deadline = e.Now().Add(10 * time.Second) })
	same(e, "lease under a deadline", a.LeaseFor, 10*time.Second)
	same(e, "lease until", a.Task.LeaseUntil, e.Now().Add(10*time.Second))
	e.Advance(4 * time.Second)
	same(e, "renewal under a deadline", e.record(store.Record{Guard: a.Guard, Op: store.Renew, Lease: lease}).LeaseFor, 6*time.Second)
	b := e.running(func(s *store.Submission) { s.Elapsed = 20 * time.Second })
	same(e, "lease under elapsed time", b.LeaseFor, 20*time.Second)
	e.Advance(5 * time.Second)
	same(e, "renewal under elapsed time", e.record(store.Record{Guard: b.Guard, Op: store.Renew, Lease: lease}).LeaseFor, 15*time.Second)
	e.Advance(time.Second)
	e.refused("accept at the deadline", e.finish(accept(a.Guard, `{}`)), onereply.WhyExpired)
}

func budgetCalls(e *Env) {
	a := e.called(func(s *store.Submission) { s.Calls = 1 })
	e.Advance(lease)
	next := e.claim(a.Task.ID)
	same(e, "spent", next.Spent, onereply.Reason(""))
	same(e, "operation to recover", next.OpenCall.Operation, "resp_1")
	e.done(accept(next.Guard, `{}`))
}

func budgetSpentGuard(e *Env) {
	t := e.created(func(s *store.Submission) { s.Deadline = e.Now().Add(time.Second) })
	e.Advance(time.Second)
	first := e.claim(t.ID)
	same(e, "renewal of a spent assignment", e.record(store.Record{Guard: first.Guard, Op: store.Renew, Lease: lease}).LeaseFor, lease)
	e.Advance(lease)
	e.refused("fail after the lease", e.finish(fail(first.Guard)), onereply.WhyExpired)
	second := e.claim(t.ID)
	same(e, "version", second.Guard.Version, int64(2))
	same(e, "reason", second.Spent, onereply.ReasonDeadlineExceeded)
	e.refused("fail by the first", e.finish(fail(first.Guard)), onereply.WhyTakenOver)
	e.done(fail(second.Guard))
}
