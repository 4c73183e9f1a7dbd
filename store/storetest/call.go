package storetest

import (
	"errors"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func callCases() []Case {
	return []Case{
		{"call is counted on the task, numbered in order", callCounts},
		{"call beyond the budget is refused within the assignment", callExhausted},
		{"call counts survive retry, release, takeover and resume", callSurvives},
		{"call that follows an open one leaves its outcome unknown", callFollows},
		{"call two at once are closed each by its number", callTwo},
		{"call that was closed keeps the first word on how it ended", callClosedTwice},
		{"call without an open one cannot be checkpointed", callCheckpoint},
	}
}

func callCounts(e *Env) {
	a := e.running()
	same(e, "first", e.record(store.Record{Guard: a.Guard, Op: store.CountCall}), store.Verdict{Call: 1})
	e.record(store.Record{Guard: a.Guard, Op: store.Checkpoint, Operation: "resp_1"})
	used := onereply.Usage{InputTokens: 7, OutputTokens: 3}
	second := e.record(store.Record{Guard: a.Guard, Op: store.CountCall,
		Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassUseless, Code: "empty_answer", Requests: 1, Usage: used}})
	same(e, "second", second, store.Verdict{Call: 2})
	e.record(store.Record{Guard: a.Guard, Op: store.CloseCall, Closed: &store.ClosedCall{Number: 2, Class: onereply.ClassAnswered, Usage: used}})
	t := e.whole(a.Task.ID)
	same(e, "budget", t.Budget.Calls, onereply.Bound{Used: 2, Max: 2})
	same(e, "attempt", t.Attempts[0], onereply.AttemptRecord{
		ID: a.Guard.Attempt, Version: 1, Worker: "worker-1", StartedAt: e.Now(), Calls: 2, Operation: "resp_1", Usage: used.Add(used),
	})
	calls := e.events(a.Task.ID, onereply.EventCalled)
	if len(calls) != 2 {
		e.Fatalf("%d called events, want 2", len(calls))
	}
	same(e, "first call", calls[0], onereply.Event{Type: onereply.EventCalled, At: e.Now(), Count: 1, Version: 1,
		Attempt: a.Guard.Attempt, Call: 1, Code: "useless", Detail: "empty_answer", Usage: used})
	same(e, "second call", calls[1].Code, "answered")
}

func callClosedTwice(e *Env) {
	a := e.running()
	e.record(store.Record{Guard: a.Guard, Op: store.CountCall})
	for _, class := range []onereply.Class{onereply.ClassUseless, onereply.ClassAnswered} {
		e.record(store.Record{Guard: a.Guard, Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1, Class: class}})
	}
	calls := e.events(a.Task.ID, onereply.EventCalled)
	if len(calls) != 1 || calls[0].Code != "useless" {
		e.Errorf("calls: %+v, want one that stays useless", calls)
	}
}

func callExhausted(e *Env) {
	a := e.running(func(s *store.Submission) { s.Calls = 1 })
	e.record(store.Record{Guard: a.Guard, Op: store.CountCall})
	got := e.records(store.Record{Guard: a.Guard, Op: store.CountCall, Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassUseless}})[0]
	same(e, "verdict", got, store.Verdict{CallsExhausted: true})
	same(e, "used", e.whole(a.Task.ID).Budget.Calls, onereply.Bound{Used: 1, Max: 1})
	calls := e.events(a.Task.ID, onereply.EventCalled)
	if len(calls) != 1 || calls[0].Code != "useless" {
		e.Errorf("calls: %+v, want the one that was sent, closed as useless", calls)
	}
	e.fencedOut(a.Guard, onereply.WhyExpired, 0)
	none := e.running(func(s *store.Submission) { s.Calls = 0 })
	same(e, "verdict of a kind without calls", e.records(store.Record{Guard: none.Guard, Op: store.CountCall})[0], store.Verdict{CallsExhausted: true})
}

func callSurvives(e *Env) {
	t := e.created(func(s *store.Submission) { s.Calls, s.Attempts = 3, 3 })
	a := e.claim(t.ID)
	e.record(store.Record{Guard: a.Guard, Op: store.CountCall})
	e.done(retry(a.Guard, 0))
	a = e.claim(t.ID)
	same(e, "after a retry", a.Task.Budget.Calls.Used, 1)
	same(e, "number", e.record(store.Record{Guard: a.Guard, Op: store.CountCall}).Call, 2)
	e.done(release(a.Guard))
	a = e.claim(t.ID)
	same(e, "after a release", a.Task.Budget.Calls.Used, 2)
	e.record(store.Record{Guard: a.Guard, Op: store.CountCall})
	e.done(fail(a.Guard))
	got := e.command(store.Command{Op: store.Resume, Scope: scope, Task: t.ID, Attempts: 1, Calls: 2, KeyRetention: keep})
	same(e, "after a resume", got.Task.Budget.Calls, onereply.Bound{Used: 3, Max: 5})
	e.claim(t.ID)
	e.Advance(lease)
	e.command(store.Command{Op: store.Cancel, Scope: scope, Task: t.ID})
	same(e, "at the end", e.whole(t.ID).Budget.Calls, onereply.Bound{Used: 3, Max: 5})
}

func callFollows(e *Env) {
	first := e.called()
	e.Advance(lease)
	next := e.claim(first.Task.ID)
	same(e, "number", e.record(store.Record{Guard: next.Guard, Op: store.CountCall}).Call, 2)
	calls := e.events(first.Task.ID, onereply.EventCalled)
	if len(calls) != 2 || calls[0].Code != "unknown" || calls[1].Code != "" {
		e.Errorf("calls: %+v, want an unknown one and an open one", calls)
	}
	e.Advance(lease)
	same(e, "what the next takeover gets", e.claim(first.Task.ID).OpenCall, &onereply.OpenCall{Number: 2, Attempt: next.Guard.Attempt})
}

func callTwo(e *Env) {
	a := e.running()
	e.record(store.Record{Guard: a.Guard, Op: store.CountCall})
	e.record(store.Record{Guard: a.Guard, Op: store.CountCall})
	e.record(store.Record{Guard: a.Guard, Op: store.CloseCall, Closed: &store.ClosedCall{Number: 2, Class: onereply.ClassAnswered}})
	e.done(release(a.Guard))
	next := e.claim(a.Task.ID)
	same(e, "the one still open", next.OpenCall, &onereply.OpenCall{Number: 1, Attempt: a.Guard.Attempt})
	e.record(store.Record{Guard: next.Guard, Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassUseless}})
	codes := []string{}
	for _, c := range e.events(a.Task.ID, onereply.EventCalled) {
		codes = append(codes, c.Code)
	}
	same(e, "classes", codes, []string{"useless", "answered"})
}

func callCheckpoint(e *Env) {
	a := e.running()
	if _, err := e.Store.Record(e.ctx, []store.Record{{Guard: a.Guard, Op: store.Checkpoint, Operation: "x"}}); !errors.Is(err, onereply.ErrInvalid) {
		e.Errorf("checkpoint without a call: %v, want an error matching ErrInvalid", err)
	}
}
