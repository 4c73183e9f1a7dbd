package storetest

import (
	"errors"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func claimCases() []Case {
	return []Case{
		{"claim hands out everything the work needs", claimWhole},
		{"claim gives the longest waiting first and no more than the limit", claimOrder},
		{"claim takes only the kinds it was asked for", claimKinds},
		{"claim by id leaves what is not due", claimByID},
		{"claim by two processes at once hands each task out once", claimRace},
		{"claim takes a task over exactly when its lease is over", claimBoundary},
		{"claim raises the version every time", claimVersions},
		{"claim of a takeover closes the earlier attempt", claimTakeover},
		{"claim of a takeover hands over state and open call", claimInherits},
		{"claim tells when work is due next", claimDue},
	}
}

func claimWhole(e *Env) {
	t := e.created()
	e.Advance(time.Second)
	got := e.claims()
	if len(got) != 1 {
		e.Fatalf("%d assignments, want 1", len(got))
	}
	want := t
	want.Status, want.Version, want.Worker, want.Attempt = onereply.StatusRunning, 1, "worker-1", got[0].Guard.Attempt
	want.LeaseUntil = e.Now().Add(lease)
	want.Budget.Attempts.Used = 1
	same(e, "assignment", got[0], store.Assignment{
		Assignment: onereply.Assignment{
			Task: want, Input: t.Input,
			Guard: onereply.Guard{Task: t.ID, Version: 1, Attempt: got[0].Guard.Attempt},
		},
		LeaseFor: lease,
	})
	if got[0].Guard.Attempt == "" {
		e.Error("the attempt has no id")
	}
	want.Attempts = []onereply.AttemptRecord{{ID: got[0].Guard.Attempt, Version: 1, Worker: "worker-1", StartedAt: e.Now()}}
	same(e, "the task on reading", e.whole(t.ID), want)
	same(e, "assignments a second time", len(e.claims()), 0)
}

func claimOrder(e *Env) {
	var want []onereply.TaskID
	for range 4 {
		want = append(want, e.created().ID)
		e.Advance(time.Millisecond)
	}
	r := e.claimRequest()
	r.Limit = 3
	c, err := e.Store.Claim(e.ctx, r)
	e.must(err)
	var got []onereply.TaskID
	for _, a := range c.Assignments {
		got = append(got, a.Task.ID)
	}
	same(e, "claimed", got, want[:3])
}

func claimKinds(e *Env) {
	reply := e.created()
	index := e.created(func(s *store.Submission) { s.Kind = "index" })
	r := e.claimRequest()
	r.Kinds = []string{"index", "notify"}
	r.IDs = []onereply.TaskID{reply.ID, index.ID}
	c, err := e.Store.Claim(e.ctx, r)
	e.must(err)
	if len(c.Assignments) != 1 || c.Assignments[0].Task.ID != index.ID {
		e.Errorf("by id of another kind: %+v", c.Assignments)
	}
	r.IDs = nil
	c, err = e.Store.Claim(e.ctx, r)
	e.must(err)
	same(e, "next due of other kinds", len(c.Assignments), 0)
}

func claimByID(e *Env) {
	due, later, ended := e.created(), e.created(func(s *store.Submission) { s.Delay = time.Minute }), e.running()
	e.done(accept(ended.Guard, `{}`))
	held := e.running()
	r := e.claimRequest()
	r.IDs = []onereply.TaskID{due.ID, later.ID, ended.Task.ID, held.Task.ID, "no-such-task", due.ID}
	c, err := e.Store.Claim(e.ctx, r)
	e.must(err)
	if len(c.Assignments) != 1 || c.Assignments[0].Task.ID != due.ID {
		e.Errorf("assignments: %+v, want the one that is due", c.Assignments)
	}
	got := map[onereply.TaskID]onereply.Status{}
	for _, t := range c.Others {
		got[t.ID] = t.Status
	}
	same(e, "others", got, map[onereply.TaskID]onereply.Status{
		later.ID: onereply.StatusQueued, ended.Task.ID: onereply.StatusCompleted, held.Task.ID: onereply.StatusRunning,
	})
	same(e, "version of the one held", e.whole(held.Task.ID).Version, int64(1))
}

func claimRace(e *Env) {
	const tasks, claimers = 30, 8
	for range tasks {
		e.created()
	}
	got, errs := make([][]store.Assignment, claimers), make([]error, claimers)
	together(claimers, func(i int) {
		handle := e.Store
		if i%2 == 1 {
			handle = e.Second
		}
		for {
			r := e.claimRequest()
			r.Limit = 2
			c, err := handle.Claim(e.ctx, r)
			if errs[i] = err; err != nil || len(c.Assignments) == 0 {
				return
			}
			got[i] = append(got[i], c.Assignments...)
		}
	})
	e.must(errors.Join(errs...))
	seen := map[onereply.TaskID]int{}
	for _, some := range got {
		for _, a := range some {
			seen[a.Task.ID]++
			same(e, "version", a.Guard.Version, int64(1))
		}
	}
	same(e, "tasks handed out", len(seen), tasks)
	for id, n := range seen {
		if n != 1 {
			e.Errorf("task %s was handed out %d times", id, n)
		}
	}
}

func claimBoundary(e *Env) {
	a := e.running()
	e.Advance(lease - time.Millisecond)
	same(e, "assignments 1ms before the lease is over", len(e.claims()), 0)
	r := e.claimRequest()
	r.IDs = []onereply.TaskID{a.Task.ID}
	c, err := e.Second.Claim(e.ctx, r)
	e.must(err)
	same(e, "assignments by id 1ms before", len(c.Assignments), 0)
	e.record(store.Record{Guard: a.Guard, Op: store.Progress, State: []byte("still mine")})
	e.Advance(time.Millisecond)
	got := e.claims()
	if len(got) != 1 {
		e.Fatalf("%d assignments when the lease is over, want 1", len(got))
	}
	same(e, "took", got[0].Took, true)
	same(e, "version", got[0].Guard.Version, int64(2))
}

func claimVersions(e *Env) {
	t := e.created()
	attempts := map[onereply.AttemptID]bool{}
	for version := int64(1); version <= 3; version++ {
		a := e.claim(t.ID)
		same(e, "version", a.Guard.Version, version)
		same(e, "attempts used", a.Task.Budget.Attempts.Used, int(version))
		same(e, "took", a.Took, false)
		attempts[a.Guard.Attempt] = true
		e.done(retry(a.Guard, 0))
	}
	same(e, "different attempt ids", len(attempts), 3)
}

func claimTakeover(e *Env) {
	first := e.running()
	started := e.Now()
	e.Advance(lease)
	r := e.claimRequest()
	r.Worker = "worker-2"
	c, err := e.Second.Claim(e.ctx, r)
	e.must(err)
	if len(c.Assignments) != 1 {
		e.Fatalf("%d assignments, want the takeover", len(c.Assignments))
	}
	second := c.Assignments[0]
	got := e.whole(first.Task.ID)
	same(e, "attempts", got.Attempts, []onereply.AttemptRecord{
		{ID: first.Guard.Attempt, Version: 1, Worker: "worker-1", StartedAt: started, EndedAt: e.Now(), Outcome: onereply.OutcomeLeaseExpired},
		{ID: second.Guard.Attempt, Version: 2, Worker: "worker-2", StartedAt: e.Now()},
	})
	same(e, "worker", got.Worker, "worker-2")
	same(e, "budget", got.Budget.Attempts, onereply.Bound{Used: 2, Max: 3})
}

func claimInherits(e *Env) {
	first := e.running()
	e.records(
		store.Record{Guard: first.Guard, Op: store.CountCall},
		store.Record{Guard: first.Guard, Op: store.Checkpoint, Operation: "resp_1"},
		store.Record{Guard: first.Guard, Op: store.Progress, State: []byte("half")},
		store.Record{Guard: first.Guard, Op: store.Progress, State: []byte("more")},
	)
	e.Advance(lease)
	second := e.claim(first.Task.ID)
	open := &onereply.OpenCall{Number: 1, Attempt: first.Guard.Attempt, Operation: "resp_1"}
	same(e, "open call", second.OpenCall, open)
	same(e, "state", string(second.State), "more")
	same(e, "calls used", second.Task.Budget.Calls, onereply.Bound{Used: 1, Max: 2})
	e.Advance(lease)
	third := e.claim(first.Task.ID)
	same(e, "open call handed on", third.OpenCall, open)
	e.record(store.Record{Guard: third.Guard, Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassUseless}})
	e.done(retry(third.Guard, 0))
	fourth := e.claim(first.Task.ID)
	if fourth.OpenCall != nil {
		e.Errorf("open call after it was closed: %+v", fourth.OpenCall)
	}
}

func claimDue(e *Env) {
	due := func(want store.Due) {
		e.Helper()
		got, err := e.Store.Due(e.ctx, []string{kind})
		e.must(err)
		same(e, "due", got, want)
	}
	due(store.Due{})
	t := e.created(func(s *store.Submission) { s.Delay = 2 * time.Second })
	e.created(func(s *store.Submission) { s.Kind = "index" })
	due(store.Due{Wait: 2 * time.Second})
	e.Advance(2 * time.Second)
	due(store.Due{Now: true})
	a := e.claim(t.ID)
	due(store.Due{Wait: lease})
	e.Advance(lease)
	due(store.Due{Now: true})
	e.done(accept(e.claim(a.Task.ID).Guard, `{}`))
	due(store.Due{})
}
