package storetest

import (
	"errors"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func acceptCases() []Case {
	return []Case{
		{"accept fills the slot and completes the task", acceptCompletes},
		{"accept fills the slot once and the response never changes", acceptOnce},
		{"accept by two processes at once fills the slot once", acceptRace},
		{"accept and cancel at once give one end", acceptCancel},
		{"accept of a batch gives each entry its verdict", acceptBatch},
		{"accept by first-valid takes a zombie's answer while the slot is empty", firstValidZombie},
		{"accept by first-valid takes an answer for a queued task", firstValidQueued},
		{"accept by first-valid refuses once the slot is full or the task has ended", firstValidEnded},
		{"accept by first-valid refuses an attempt that was never recorded", firstValidForged},
		{"accept by first-valid refuses what comes at the deadline", firstValidDeadline},
		{"accept alone is open under first-valid", firstValidOthers},
	}
}

func acceptCompletes(e *Env) {
	a := e.called()
	e.record(store.Record{Guard: a.Guard, Op: store.Progress, State: []byte("x")})
	e.Advance(time.Second)
	end := accept(a.Guard, `{"text":"hi"}`)
	used := onereply.Usage{InputTokens: 5, OutputTokens: 6}
	end.Closed = &store.ClosedCall{Number: 1, Class: onereply.ClassAnswered, Requests: 1, Usage: used}
	got := e.done(end)
	want := a.Task
	want.Status, want.LeaseUntil, want.EndedAt = onereply.StatusCompleted, time.Time{}, e.Now()
	want.Budget.Calls.Used = 1
	want.Response = end.Response
	same(e, "task", got, want)
	want.Attempts = []onereply.AttemptRecord{{
		ID: a.Guard.Attempt, Version: 1, Worker: "worker-1", StartedAt: e.Now().Add(-time.Second), EndedAt: e.Now(),
		Outcome: onereply.OutcomeAccepted, Calls: 1, Operation: "resp_1", Usage: used,
	}}
	same(e, "the task on reading", e.whole(a.Task.ID), want)
	e.Advance(time.Hour)
	same(e, "assignments afterwards", len(e.claims()), 0)
}

func acceptOnce(e *Env) {
	a := e.running()
	e.done(accept(a.Guard, `{"text":"first"}`))
	v := e.finish(accept(a.Guard, `{"text":"second"}`))
	e.refused("a second accept", v, onereply.WhyCompleted)
	same(e, "who completed it", v.Refused.By, a.Guard.Attempt)
	same(e, "response", string(e.whole(a.Task.ID).Response), `{"text":"first"}`)
}

func acceptRace(e *Env) {
	for range 5 {
		a := e.running(func(s *store.Submission) { s.Rules.Acceptance = onereply.FirstValid })
		verdicts, errs := make([]store.Verdict, 6), make([]error, 6)
		together(6, func(i int) {
			handle := e.Store
			if i%2 == 1 {
				handle = e.Second
			}
			verdicts[i], errs[i] = e.tryFinish(handle, accept(a.Guard, `{"text":"`+string(rune('a'+i))+`"}`))
		})
		e.must(errors.Join(errs...))
		var won []string
		for i, v := range verdicts {
			if v.Refused == nil {
				won = append(won, `{"text":"`+string(rune('a'+i))+`"}`)
			}
		}
		same(e, "the response of the only winner", won, []string{string(e.whole(a.Task.ID).Response)})
	}
}

func acceptCancel(e *Env) {
	for range 10 {
		a := e.running()
		var accepted store.Verdict
		var cancelled store.Commanded
		errs := make([]error, 2)
		together(2, func(i int) {
			if i == 0 {
				accepted, errs[0] = e.tryFinish(e.Store, accept(a.Guard, `{}`))
			} else {
				cancelled, errs[1] = e.tryCommand(e.Second, store.Command{Op: store.Cancel, Scope: scope, Task: a.Task.ID})
			}
		})
		e.must(errors.Join(errs...))
		t := e.whole(a.Task.ID)
		switch t.Status {
		case onereply.StatusCompleted:
			same(e, "accepted", accepted.Refused == nil, true)
			same(e, "cancel", cancelled.Verdict, store.HasEnded)
			same(e, "response", string(t.Response), `{}`)
		case onereply.StatusCancelled:
			e.refused("accept", accepted, onereply.WhyCancelled)
			same(e, "cancel", cancelled.Verdict, store.Done)
			same(e, "response", string(t.Response), "")
		default:
			e.Errorf("the task is %s", t.Status)
		}
	}
}

func acceptBatch(e *Env) {
	zombie, fine, last := e.running(), e.running(), e.running()
	e.command(store.Command{Op: store.Cancel, Scope: scope, Task: zombie.Task.ID})
	var v []store.Verdict
	e.must(e.Store.InTx(e.ctx, func(ctx contextT, tx onereply.Tx) (err error) {
		v, err = e.Store.Finish(ctx, tx, []store.Ending{accept(fine.Guard, `{}`), accept(zombie.Guard, `{}`), fail(last.Guard)})
		return err
	}))
	if len(v) != 3 {
		e.Fatalf("%d verdicts, want 3", len(v))
	}
	same(e, "first", v[0].Task.Status, onereply.StatusCompleted)
	e.refused("second", v[1], onereply.WhyCancelled)
	same(e, "third", v[2].Task.Status, onereply.StatusFailed)
}

func firstValid(s *store.Submission) { s.Rules.Acceptance = onereply.FirstValid }

func firstValidZombie(e *Env) {
	zombie := e.running(firstValid)
	e.Advance(lease)
	next := e.claim(zombie.Task.ID)
	got := e.done(accept(zombie.Guard, `{"text":"late but valid"}`))
	same(e, "status", got.Status, onereply.StatusCompleted)
	same(e, "by", got.Attempt, zombie.Guard.Attempt)
	same(e, "version", got.Version, int64(2))
	v := e.finish(accept(next.Guard, `{"text":"other"}`))
	e.refused("the other's accept", v, onereply.WhyCompleted)
	same(e, "who completed it", v.Refused.By, zombie.Guard.Attempt)
	t := e.whole(zombie.Task.ID)
	same(e, "response", string(t.Response), `{"text":"late but valid"}`)
	same(e, "the zombie's outcome", t.Attempts[0].Outcome, onereply.OutcomeAccepted)
	same(e, "the other's outcome", t.Attempts[1].Outcome, onereply.OutcomeFencedOut)
}

func firstValidQueued(e *Env) {
	a := e.running(firstValid)
	e.done(release(a.Guard))
	got := e.done(accept(a.Guard, `{}`))
	same(e, "status", got.Status, onereply.StatusCompleted)
	same(e, "assignments afterwards", len(e.claims()), 0)
}

func firstValidEnded(e *Env) {
	full := e.running(firstValid)
	e.done(accept(full.Guard, `{"text":"kept"}`))
	e.refused("accept of a full slot", e.finish(accept(full.Guard, `{}`)), onereply.WhyCompleted)
	failed := e.running(firstValid)
	e.done(fail(failed.Guard))
	e.refused("accept after failed", e.finish(accept(failed.Guard, `{}`)), onereply.WhyFailed)
	cancelled := e.running(firstValid)
	e.command(store.Command{Op: store.Cancel, Scope: scope, Task: cancelled.Task.ID})
	e.refused("accept after cancelled", e.finish(accept(cancelled.Guard, `{}`)), onereply.WhyCancelled)
	same(e, "response", string(e.whole(full.Task.ID).Response), `{"text":"kept"}`)
}

func firstValidForged(e *Env) {
	a := e.running(firstValid)
	e.Advance(lease)
	e.claim(a.Task.ID)
	forged := a.Guard
	forged.Attempt = e.ids.NewAttempt()
	e.refused("accept by an unknown attempt", e.finish(accept(forged, `{}`)), onereply.WhyTakenOver)
	forged = a.Guard
	forged.Version = 2
	e.refused("accept by an attempt under another's version", e.finish(accept(forged, `{}`)), onereply.WhyTakenOver)
}

func firstValidDeadline(e *Env) {
	bounded := func(s *store.Submission) { s.Rules.Acceptance, s.Deadline = onereply.FirstValid, e.Now().Add(2*lease) }
	a, b := e.running(bounded), e.running(bounded)
	e.Advance(2*lease - time.Millisecond)
	e.done(accept(a.Guard, `{}`))
	e.Advance(time.Millisecond)
	e.refused("accept at the deadline", e.finish(accept(b.Guard, `{}`)), onereply.WhyExpired)
}

func firstValidOthers(e *Env) {
	a := e.running(firstValid)
	e.Advance(lease)
	e.claim(a.Task.ID)
	for _, end := range []store.Ending{fail(a.Guard), retry(a.Guard, 0), release(a.Guard)} {
		e.refused("another ending of a zombie", e.finish(end), onereply.WhyTakenOver)
	}
	e.refused("a zombie's draft", e.records(store.Record{Guard: a.Guard, Op: store.DraftText, Seq: 1, Text: "x"})[0], onereply.WhyTakenOver)
}
