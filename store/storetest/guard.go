package storetest

import (
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func guardCases() []Case {
	return []Case{
		{"guard refuses every write of a zombie after a takeover", guardZombie},
		{"guard refuses every write once the lease is over and nobody has taken over", guardExpired},
		{"guard refuses the right version with another attempt's id", guardAttempt},
		{"guard refuses the right attempt with another version", guardVersion},
		{"guard refuses every write after each end", guardEnded},
		{"guard refuses who has put the task back", guardPutBack},
		{"guard refuses who names a task that is not there", guardGone},
		{"guard holds to the last millisecond of the lease", guardLast},
		{"guard of one entry says nothing about its neighbours", guardNeighbours},
		{"guard refuses an answer that is known to be late", guardLate},
		{"renew extends the lease from now", guardRenew},
	}
}

// attack makes every guarded write there is and insists that each is refused
// with the reason and leaves the task as it was.
func (e *Env) attack(g onereply.Guard, why onereply.Why) {
	e.Helper()
	before := e.whole(g.Task)
	for name, r := range map[string]store.Record{
		"renew":      {Op: store.Renew, Lease: time.Hour},
		"count call": {Op: store.CountCall},
		"close call": {Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassAnswered}},
		"checkpoint": {Op: store.Checkpoint, Operation: "resp_zombie"},
		"draft":      {Op: store.DraftText, Seq: 99, Text: "zombie"},
		"progress":   {Op: store.Progress, State: []byte("zombie")},
	} {
		r.Guard = g
		e.refused(name, e.records(r)[0], why)
	}
	for name, end := range map[string]store.Ending{
		"accept": accept(g, `{"text":"zombie"}`), "fail": fail(g), "retry": retry(g, time.Hour), "release": release(g),
	} {
		end.Closed = &store.ClosedCall{Number: 1, Class: onereply.ClassAnswered}
		v := e.finish(end)
		e.refused(name, v, why)
		if v.Task == nil || v.Task.Status != before.Status || v.Task.Version != before.Version {
			e.Errorf("%s: the verdict shows the task as %+v, want it as it stands", name, v.Task)
		}
	}
	after := e.whole(g.Task)
	for i := range after.Attempts { // that an attempt was fenced out may be recorded where it had no outcome
		if after.Attempts[i].Outcome == onereply.OutcomeFencedOut && after.Attempts[i].ID == g.Attempt {
			after.Attempts[i].Outcome, after.Attempts[i].EndedAt, after.Attempts[i].Error = before.Attempts[i].Outcome, before.Attempts[i].EndedAt, before.Attempts[i].Error
		}
	}
	same(e, "the task after all that", after, before)
}

// fencedOut insists on one counted event for the attempt and reason.
func (e *Env) fencedOut(g onereply.Guard, why onereply.Why, count int) {
	e.Helper()
	var got []onereply.Event
	for _, event := range e.events(g.Task, onereply.EventFencedOut) {
		if event.Attempt == g.Attempt && event.Version == g.Version && event.Why == why {
			got = append(got, event)
		}
	}
	if count == 0 {
		same(e, "fenced_out events", len(got), 0)
		return
	}
	if len(got) != 1 || got[0].Count != count {
		e.Errorf("fenced_out events (%s) of %s: %+v, want one that counts %d", why, g.Attempt, got, count)
	}
}

// called has an open call with a checkpoint.
func (e *Env) called(change ...func(*store.Submission)) store.Assignment {
	e.Helper()
	a := e.running(change...)
	e.records(
		store.Record{Guard: a.Guard, Op: store.CountCall},
		store.Record{Guard: a.Guard, Op: store.Checkpoint, Operation: "resp_1"},
		store.Record{Guard: a.Guard, Op: store.DraftText, Seq: 1, Text: "so far"},
	)
	return a
}

func guardZombie(e *Env) {
	zombie := e.called()
	e.Advance(lease)
	next := e.claim(zombie.Task.ID)
	e.attack(zombie.Guard, onereply.WhyTakenOver)
	e.fencedOut(zombie.Guard, onereply.WhyTakenOver, 10)
	same(e, "the earlier attempt's outcome", e.whole(zombie.Task.ID).Attempts[0].Outcome, onereply.OutcomeLeaseExpired)
	v := e.records(store.Record{Guard: zombie.Guard, Op: store.Renew, Lease: lease})[0]
	same(e, "refusal", v.Refused, &onereply.Refusal{Guard: zombie.Guard, Why: onereply.WhyTakenOver, Version: 2, By: next.Guard.Attempt})
	got := e.done(accept(next.Guard, `{"text":"right"}`))
	same(e, "the successor's response", string(got.Response), `{"text":"right"}`)
	same(e, "response on reading", string(e.whole(zombie.Task.ID).Response), `{"text":"right"}`)
}

func guardExpired(e *Env) {
	a := e.called()
	e.Advance(lease)
	e.attack(a.Guard, onereply.WhyExpired)
	e.fencedOut(a.Guard, onereply.WhyExpired, 10)
	same(e, "outcome of the attempt", e.whole(a.Task.ID).Attempts[0].Outcome, onereply.OutcomeFencedOut)
	next := e.claim(a.Task.ID)
	same(e, "takeover", next.Took, true)
	same(e, "outcome after the takeover", e.whole(a.Task.ID).Attempts[0].Outcome, onereply.OutcomeFencedOut)
}

func guardAttempt(e *Env) {
	a := e.called()
	forged := a.Guard
	forged.Attempt = e.ids.NewAttempt()
	e.attack(forged, onereply.WhyTakenOver)
	e.done(accept(a.Guard, `{}`))
}

func guardVersion(e *Env) {
	a := e.called()
	for _, version := range []int64{0, 2} {
		forged := a.Guard
		forged.Version = version
		e.attack(forged, onereply.WhyTakenOver)
	}
	e.done(accept(a.Guard, `{}`))
}

func guardEnded(e *Env) {
	completed := e.called()
	e.done(accept(completed.Guard, `{"text":"kept"}`))
	e.attack(completed.Guard, onereply.WhyCompleted)
	e.fencedOut(completed.Guard, onereply.WhyCompleted, 0) // its own end
	failed := e.called()
	e.done(fail(failed.Guard))
	e.attack(failed.Guard, onereply.WhyFailed)
	e.fencedOut(failed.Guard, onereply.WhyFailed, 0)
	cancelled := e.called()
	e.command(store.Command{Op: store.Cancel, Scope: scope, Task: cancelled.Task.ID})
	e.attack(cancelled.Guard, onereply.WhyCancelled)
	e.fencedOut(cancelled.Guard, onereply.WhyCancelled, 0)
}

func guardPutBack(e *Env) {
	a := e.called()
	e.done(retry(a.Guard, time.Minute))
	e.attack(a.Guard, onereply.WhyPutBack)
	e.fencedOut(a.Guard, onereply.WhyPutBack, 0)
	b := e.called()
	e.done(release(b.Guard))
	e.attack(b.Guard, onereply.WhyPutBack)
	e.fencedOut(b.Guard, onereply.WhyPutBack, 0)
}

func guardGone(e *Env) {
	g := onereply.Guard{Task: onereply.TaskID(e.ids.New()), Version: 1, Attempt: e.ids.NewAttempt()}
	e.refused("renew", e.records(store.Record{Guard: g, Op: store.Renew, Lease: lease})[0], onereply.WhyGone)
	v := e.finish(accept(g, `{}`))
	e.refused("accept", v, onereply.WhyGone)
	if v.Task != nil {
		e.Errorf("a task that is not there: %+v", v.Task)
	}
}

func guardLast(e *Env) {
	a := e.running()
	e.Advance(lease - time.Millisecond)
	for _, r := range []store.Record{
		{Op: store.CountCall}, {Op: store.Checkpoint, Operation: "resp_1"}, {Op: store.DraftText, Seq: 1, Text: "x"},
		{Op: store.Progress, State: []byte("x")}, {Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassAnswered}},
	} {
		r.Guard = a.Guard
		e.record(r)
	}
	e.done(accept(a.Guard, `{}`))
}

func guardNeighbours(e *Env) {
	zombie, fine := e.running(), e.running()
	e.Advance(lease - time.Second)
	e.record(store.Record{Guard: fine.Guard, Op: store.Renew, Lease: lease})
	e.Advance(time.Second)
	next := e.claim(zombie.Task.ID)
	got := e.records(
		store.Record{Guard: zombie.Guard, Op: store.Renew, Lease: lease},
		store.Record{Guard: next.Guard, Op: store.Renew, Lease: lease},
		store.Record{Guard: fine.Guard, Op: store.Renew, Lease: lease},
		store.Record{Guard: zombie.Guard, Op: store.DraftText, Seq: 1, Text: "x"},
	)
	e.refused("the zombie's renewal", got[0], onereply.WhyTakenOver)
	same(e, "the successor's renewal", got[1], store.Verdict{LeaseFor: lease})
	same(e, "another task's renewal", got[2], store.Verdict{LeaseFor: lease})
	e.refused("the zombie's draft", got[3], onereply.WhyTakenOver)
}

func guardLate(e *Env) {
	a := e.called()
	e.Advance(lease)
	e.claim(a.Task.ID)
	wasted := &store.ClosedCall{Number: 1, Class: onereply.ClassAnswered, Usage: onereply.Usage{InputTokens: 10, OutputTokens: 20}}
	e.refused("late", e.records(store.Record{Guard: a.Guard, Op: store.Late, Closed: wasted})[0], onereply.WhyTakenOver)
	e.fencedOut(a.Guard, onereply.WhyTakenOver, 1)
	events := e.events(a.Task.ID, onereply.EventFencedOut)
	same(e, "tokens wasted", events[0].Usage, wasted.Usage)
	end := accept(a.Guard, `{}`)
	end.Closed = wasted
	e.refused("accept", e.finish(end), onereply.WhyTakenOver)
	events = e.events(a.Task.ID, onereply.EventFencedOut)
	same(e, "tokens wasted, both counted", events[0].Usage, wasted.Usage.Add(wasted.Usage))
}

func guardRenew(e *Env) {
	a := e.running()
	e.Advance(10 * time.Second)
	same(e, "verdict", e.record(store.Record{Guard: a.Guard, Op: store.Renew, Lease: lease}), store.Verdict{LeaseFor: lease})
	same(e, "lease until", e.whole(a.Task.ID).LeaseUntil, e.Now().Add(lease))
	e.Advance(lease - time.Millisecond)
	same(e, "assignments before the new end", len(e.claims()), 0)
	e.Advance(time.Millisecond)
	same(e, "assignments at the new end", len(e.claims()), 1)
}
