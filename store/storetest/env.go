package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Env is a case's store and the verbs the cases are written in. A verb ends
// the case when the store answers with an error.
type Env struct {
	testing.TB
	Fixture
	ctx context.Context
	ids *onereply.IDs
}

const (
	scope  = "workspace-a"
	action = "reply"
	kind   = "reply"
	lease  = 30 * time.Second
	keep   = time.Hour // key retention
)

func newEnv(t testing.TB, open Harness) *Env {
	t.Helper()
	return &Env{TB: t, Fixture: open(t), ctx: t.Context(), ids: onereply.NewIDs()}
}

func (e *Env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// same compares exactly.
func same[T any](e *Env, what string, got, want T) {
	e.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// submission is a valid one; change what the case is about.
func (e *Env) submission(key string) store.Submission {
	return store.Submission{
		Scope: scope, Action: action, Key: key, Fingerprint: []byte("inputs-1"), KeyRetention: keep,
		ID: onereply.TaskID(e.ids.New()), Kind: kind, Input: json.RawMessage(`{"text":"hello"}`),
		Rules:    onereply.Rules{OnUnknown: onereply.UnknownRetry, Acceptance: onereply.CurrentAssignment},
		Attempts: 3, Calls: 2, Elapsed: 15 * time.Minute,
	}
}

// trySubmit submits on a handle and commits.
func (e *Env) trySubmit(s store.Store, subs ...store.Submission) (v []store.Submitted, err error) {
	err = s.InTx(e.ctx, func(ctx context.Context, tx onereply.Tx) error {
		v, err = s.Submit(ctx, tx, subs)
		return err
	})
	return v, err
}

func (e *Env) submit(s store.Submission) store.Submitted {
	e.Helper()
	v, err := e.trySubmit(e.Store, s)
	e.must(err)
	if len(v) != 1 {
		e.Fatalf("submit gave %d verdicts for one entry", len(v))
	}
	return v[0]
}

// created submits and insists that it created.
func (e *Env) created(change ...func(*store.Submission)) onereply.Task {
	e.Helper()
	s := e.submission(e.ids.New())
	for _, c := range change {
		c(&s)
	}
	v := e.submit(s)
	if v.Verdict != store.Created {
		e.Fatalf("submit of a fresh key: verdict %d, want created", v.Verdict)
	}
	return v.Task
}

func (e *Env) claimRequest() store.Claim {
	return store.Claim{Worker: "worker-1", Lease: lease, Kinds: []string{kind}, Limit: 10, NewAttempt: e.ids.NewAttempt}
}

// claims hands out what is due.
func (e *Env) claims() []store.Assignment {
	e.Helper()
	c, err := e.Store.Claim(e.ctx, e.claimRequest())
	e.must(err)
	return c.Assignments
}

// claim hands out this one task.
func (e *Env) claim(id onereply.TaskID) store.Assignment {
	e.Helper()
	r := e.claimRequest()
	r.IDs = []onereply.TaskID{id}
	c, err := e.Store.Claim(e.ctx, r)
	e.must(err)
	if len(c.Assignments) != 1 {
		e.Fatalf("claim of %s gave %d assignments, want 1 (others: %+v)", id, len(c.Assignments), c.Others)
	}
	return c.Assignments[0]
}

// running is a fresh task with an assignment.
func (e *Env) running(change ...func(*store.Submission)) store.Assignment {
	e.Helper()
	return e.claim(e.created(change...).ID)
}

func (e *Env) records(entries ...store.Record) []store.Verdict {
	e.Helper()
	v, err := e.Store.Record(e.ctx, entries)
	e.must(err)
	if len(v) != len(entries) {
		e.Fatalf("record gave %d verdicts for %d entries", len(v), len(entries))
	}
	return v
}

// record makes one guarded write and insists that it was done.
func (e *Env) record(r store.Record) store.Verdict {
	e.Helper()
	v := e.records(r)[0]
	if v.Refused != nil {
		e.Fatalf("record op %d: %v", r.Op, v.Refused)
	}
	return v
}

func (e *Env) finish(end store.Ending) store.Verdict {
	e.Helper()
	v, err := e.tryFinish(e.Store, end)
	e.must(err)
	return v
}

func (e *Env) tryFinish(s store.Store, end store.Ending) (v store.Verdict, err error) {
	err = s.InTx(e.ctx, func(ctx context.Context, tx onereply.Tx) error {
		all, err := s.Finish(ctx, tx, []store.Ending{end})
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("finish gave %d verdicts for one entry", len(all))
		}
		if err == nil {
			v = all[0]
		}
		return err
	})
	return v, err
}

// done ends an assignment and insists that it took hold.
func (e *Env) done(end store.Ending) onereply.Task {
	e.Helper()
	v := e.finish(end)
	if v.Refused != nil {
		e.Fatalf("ending op %d: %v", end.Op, v.Refused)
	}
	if v.Task == nil {
		e.Fatalf("ending op %d gave no task", end.Op)
	}
	return *v.Task
}

func (e *Env) command(c store.Command) store.Commanded {
	e.Helper()
	v, err := e.tryCommand(e.Store, c)
	e.must(err)
	return v
}

func (e *Env) tryCommand(s store.Store, c store.Command) (v store.Commanded, err error) {
	err = s.InTx(e.ctx, func(ctx context.Context, tx onereply.Tx) error {
		all, err := s.Command(ctx, tx, []store.Command{c})
		if err == nil && len(all) != 1 {
			err = errors.New("command gave not one verdict for one entry")
		}
		if err == nil {
			v = all[0]
		}
		return err
	})
	return v, err
}

// whole reads a task with everything.
func (e *Env) whole(id onereply.TaskID) onereply.Task {
	e.Helper()
	all, err := e.Store.Tasks(e.ctx, store.Query{IDs: []onereply.TaskID{id}, Whole: true})
	e.must(err)
	if len(all) != 1 {
		e.Fatalf("task %s: %d found", id, len(all))
	}
	return all[0]
}

func (e *Env) timeline(id onereply.TaskID) []onereply.Event {
	e.Helper()
	events, err := e.Store.Timeline(e.ctx, "*", id)
	e.must(err)
	return events
}

// events are those of one type.
func (e *Env) events(id onereply.TaskID, t onereply.EventType) []onereply.Event {
	e.Helper()
	var some []onereply.Event
	for _, event := range e.timeline(id) {
		if event.Type == t {
			some = append(some, event)
		}
	}
	return some
}

// refused insists on a refusal and its reason.
func (e *Env) refused(what string, v store.Verdict, why onereply.Why) {
	e.Helper()
	switch {
	case v.Refused == nil:
		e.Errorf("%s was done, want it fenced out (%s)", what, why)
	case v.Refused.Why != why:
		e.Errorf("%s was refused as %s, want %s", what, v.Refused.Why, why)
	case !errors.Is(v.Refused, onereply.ErrFencedOut):
		e.Errorf("%s: the refusal does not match ErrFencedOut", what)
	}
}

func accept(g onereply.Guard, response string) store.Ending {
	return store.Ending{Guard: g, Op: store.Accept, Outcome: onereply.OutcomeAccepted, Response: json.RawMessage(response)}
}

func fail(g onereply.Guard) store.Ending {
	return store.Ending{
		Guard: g, Op: store.Fail, Outcome: onereply.OutcomeFailed, Reason: onereply.ReasonPermanent,
		Failure: &onereply.Failure{Code: "content_filtered", Message: "stopped"},
	}
}

func retry(g onereply.Guard, delay time.Duration) store.Ending {
	return store.Ending{
		Guard: g, Op: store.Retry, Outcome: onereply.OutcomeRetried, Delay: delay,
		Failure: &onereply.Failure{Code: "rate_limited", Message: "slow down"},
	}
}

func release(g onereply.Guard) store.Ending {
	return store.Ending{
		Guard: g, Op: store.Release, Outcome: onereply.OutcomeInterrupted,
		Failure: &onereply.Failure{Code: "interrupted", Message: "shutting down"},
	}
}

// together runs f n times at once and waits for all.
func together(n int, f func(i int)) {
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			<-start
			f(i)
		}()
	}
	close(start)
	for range n {
		<-done
	}
}
