package storetest

import (
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func commandCases() []Case {
	return []Case{
		{"cancel ends a queued task", cancelQueued},
		{"cancel ends a running task and its attempt", cancelRunning},
		{"cancel gives the verdict that the task's state asks for", cancelVerdicts},
		{"cancel and resume stay within the scope", commandScope},
		{"resume reopens a failed task with a fresh allowance", resumeReopens},
		{"resume gives the verdict that the task's state asks for", resumeVerdicts},
		{"resume under a passed deadline needs a new one", resumeDeadline},
		{"resume renews the key's record", resumeKey},
	}
}

func cancelQueued(e *Env) {
	t := e.created()
	e.Advance(time.Second)
	got := e.command(store.Command{Op: store.Cancel, Scope: scope, Task: t.ID})
	t.Status, t.EndedAt = onereply.StatusCancelled, e.Now()
	same(e, "cancelled", got, store.Commanded{Verdict: store.Done, Task: t})
	same(e, "assignments afterwards", len(e.claims()), 0)
}

func cancelRunning(e *Env) {
	a := e.called()
	got := e.command(store.Command{Op: store.Cancel, Scope: scope, Task: a.Task.ID})
	same(e, "verdict", got.Verdict, store.Done)
	same(e, "input", string(got.Task.Input), string(a.Input))
	t := e.whole(a.Task.ID)
	same(e, "status", t.Status, onereply.StatusCancelled)
	same(e, "lease", t.LeaseUntil, time.Time{})
	same(e, "outcome", t.Attempts[0].Outcome, onereply.OutcomeCancelled)
	same(e, "attempt ended", t.Attempts[0].EndedAt, e.Now())
	same(e, "class of the open call", e.events(a.Task.ID, onereply.EventCalled)[0].Code, "unknown")
	e.Advance(time.Hour)
	same(e, "assignments afterwards", len(e.claims()), 0)
}

func cancelVerdicts(e *Env) {
	cancel := func(id onereply.TaskID) store.Commanded {
		return e.command(store.Command{Op: store.Cancel, Scope: scope, Task: id})
	}
	same(e, "no such task", cancel("no-such-task"), store.Commanded{Verdict: store.Missing})
	t := e.created()
	same(e, "first", cancel(t.ID).Verdict, store.Done)
	ended := e.whole(t.ID).EndedAt
	e.Advance(time.Second)
	again := cancel(t.ID)
	same(e, "again", again.Verdict, store.AlreadyDone)
	same(e, "end of the first", again.Task.EndedAt, ended)
	completed, failed := e.running(), e.running()
	e.done(accept(completed.Guard, `{"text":"kept"}`))
	e.done(fail(failed.Guard))
	v := cancel(completed.Task.ID)
	same(e, "of a completed one", v.Verdict, store.HasEnded)
	same(e, "its response", string(v.Task.Response), `{"text":"kept"}`)
	same(e, "of a failed one", cancel(failed.Task.ID).Verdict, store.HasEnded)
	same(e, "status of the completed one", e.whole(completed.Task.ID).Status, onereply.StatusCompleted)
	same(e, "cancelled events", len(e.events(t.ID, onereply.EventCancelled)), 1)
}

func commandScope(e *Env) {
	t := e.created()
	other := store.Command{Op: store.Cancel, Scope: "workspace-b", Task: t.ID}
	same(e, "cancel from another scope", e.command(other), store.Commanded{Verdict: store.Missing})
	same(e, "status", e.whole(t.ID).Status, onereply.StatusQueued)
	a := e.claim(t.ID)
	e.done(fail(a.Guard))
	other.Op, other.Attempts = store.Resume, 1
	same(e, "resume from another scope", e.command(other), store.Commanded{Verdict: store.Missing})
	other.Scope = "*"
	same(e, "resume from any scope", e.command(other).Verdict, store.Done)
	events, err := e.Store.Timeline(e.ctx, "workspace-b", t.ID)
	e.must(err)
	same(e, "timeline from another scope", len(events), 0)
}

func resumeReopens(e *Env) {
	a := e.called(func(s *store.Submission) { s.Attempts, s.Calls = 1, 1 })
	e.record(store.Record{Guard: a.Guard, Op: store.Progress, State: []byte("half")})
	e.Advance(time.Second)
	e.done(fail(a.Guard))
	e.Advance(20 * time.Minute)
	got := e.command(store.Command{Op: store.Resume, Scope: scope, Task: a.Task.ID, Attempts: 5, Calls: 3, KeyRetention: keep})
	want := a.Task
	want.Status, want.LeaseUntil, want.RunAt = onereply.StatusQueued, time.Time{}, e.Now()
	want.Budget.Attempts, want.Budget.Calls = onereply.Bound{Used: 1, Max: 6}, onereply.Bound{Used: 1, Max: 4}
	want.Budget.ElapsedFrom = e.Now()
	same(e, "resumed", got, store.Commanded{Verdict: store.Done, Task: want})
	again := e.command(store.Command{Op: store.Resume, Scope: scope, Task: a.Task.ID, Attempts: 5, Calls: 3})
	same(e, "again", again.Verdict, store.NotFailed)
	next := e.claim(a.Task.ID)
	same(e, "spent", next.Spent, onereply.Reason(""))
	same(e, "version", next.Guard.Version, int64(2))
	same(e, "state", string(next.State), "half")
	e.done(accept(next.Guard, `{}`))
	same(e, "failures in the timeline", len(e.events(a.Task.ID, onereply.EventFailed)), 1)
	same(e, "resumes in the timeline", len(e.events(a.Task.ID, onereply.EventResumed)), 1)
}

func resumeVerdicts(e *Env) {
	resume := func(id onereply.TaskID) store.CommandVerdict {
		return e.command(store.Command{Op: store.Resume, Scope: scope, Task: id, Attempts: 1, Calls: 1}).Verdict
	}
	same(e, "no such task", resume("no-such-task"), store.Missing)
	queued, running, completed, cancelled := e.created(), e.running(), e.running(), e.created()
	e.done(accept(completed.Guard, `{}`))
	e.command(store.Command{Op: store.Cancel, Scope: scope, Task: cancelled.ID})
	for _, id := range []onereply.TaskID{queued.ID, running.Task.ID, completed.Task.ID, cancelled.ID} {
		before := e.whole(id)
		same(e, "of a task that is "+string(before.Status), resume(id), store.NotFailed)
		same(e, "the task afterwards", e.whole(id), before)
	}
}

func resumeDeadline(e *Env) {
	a := e.running(func(s *store.Submission) { s.Deadline = e.Now().Add(time.Minute) })
	e.done(fail(a.Guard))
	c := store.Command{Op: store.Resume, Scope: scope, Task: a.Task.ID, Attempts: 1, Calls: 1}
	e.Advance(time.Minute)
	before := e.whole(a.Task.ID)
	v := e.command(c)
	same(e, "verdict without a new deadline", v.Verdict, store.DeadlinePassed)
	same(e, "status", v.Task.Status, onereply.StatusFailed)
	same(e, "the task afterwards", e.whole(a.Task.ID), before)
	c.Deadline = e.Now()
	same(e, "verdict with one that is over", e.command(c).Verdict, store.DeadlinePassed)
	c.Deadline = e.Now().Add(time.Hour)
	v = e.command(c)
	same(e, "verdict with a new one", v.Verdict, store.Done)
	same(e, "deadline", v.Task.Budget.Deadline, c.Deadline)
}

func resumeKey(e *Env) {
	s := e.submission("k")
	e.submit(s)
	e.done(fail(e.claim(s.ID).Guard))
	e.Advance(keep - time.Second)
	e.command(store.Command{Op: store.Resume, Scope: scope, Task: s.ID, Attempts: 1, Calls: 1, KeyRetention: keep})
	e.Advance(2 * time.Second)
	e.done(accept(e.claim(s.ID).Guard, `{}`))
	again := s
	again.ID = onereply.TaskID(e.ids.New())
	e.Advance(keep - 2*time.Second - time.Millisecond)
	same(e, "1ms before the renewed record expires", e.submit(again).Verdict, store.Existing)
	e.Advance(time.Millisecond)
	same(e, "when it expires", e.submit(again).Verdict, store.Created)
}
