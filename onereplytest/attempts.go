package onereplytest

import (
	"context"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
)

// killedAt kills the worker at a point and has a second process take over.
func killedAt(point Point) func(*trial) {
	return func(r *trial) {
		first := r.start("first")
		hold := first.HoldAt(point)
		id := r.submit(0, "key")
		r.held(hold, id)
		first.Kill()
		hold.Release()
		r.start("second")
		r.endsAfterLoss(id)
	}
}

func deliveredTwice(r *trial) {
	worker := r.start("worker")
	hold := worker.HoldAt(Claimed)
	id := r.submit(0, "key")
	r.held(hold, id)
	r.deliver(id, "while it ran")
	hold.Release()
	r.completes(id)
	r.deliver(id, "after its end")
}

// deliver is a second worker that was told of the task.
func (r *trial) deliver(id onereply.TaskID, when string) {
	r.t.Helper()
	claimed, err := r.Store.Claim(r.t.Context(), store.Claim{
		Worker: "redelivery", Lease: 30 * time.Second, Kinds: []string{r.c.Kind.Name},
		IDs: []onereply.TaskID{id}, Limit: 1, NewAttempt: onereply.NewIDs().NewAttempt,
	})
	if err != nil {
		r.t.Fatalf("claiming the task by its id: %v", err)
	}
	if len(claimed.Assignments) > 0 {
		r.t.Errorf("delivered again %s, the task was handed out a second time", when)
	}
}

// ends has the first call end in a way that another call may survive.
func ends(o Outcome) func(*trial) {
	return func(r *trial) {
		r.Provider.Script(o)
		r.start("worker")
		id := r.submit(0, "key")
		t := r.wait(id)
		calls := t.Budget.Calls
		if calls.Used == 0 && r.Provider.Requests() == 0 {
			r.t.Skip("this kind makes no call, so no call can go wrong")
		}
		switch {
		case t.Status == onereply.StatusCompleted && calls.Used == 1 && o != NotSent && !r.recovers(id):
			r.t.Errorf("task %s was completed by a call that %s: Work takes for a whole answer what is none", id, wentWrong(o))
		case t.Status == onereply.StatusCompleted || calls.Max < 2 || t.Budget.Attempts.Max < 2:
		case t.Reason == onereply.ReasonOutcomeUnknown && t.Policy.OnUnknown == onereply.UnknownStop && (o == Cut || o == Lost):
		default:
			r.t.Errorf("task %s %s after a call that %s: its Work did not pass on how the call ended", id, standing(t), wentWrong(o))
		}
	}
}

func wentWrong(o Outcome) string {
	return map[Outcome]string{
		Cut: "broke off in the middle of its answer", Lost: "gave no answer", Limited: "was asked to come back later (429)",
		NotSent: "found no connection", Rejected: "was refused for good (400)", Overloaded: "met an overloaded provider (503)",
	}[o]
}

func refused(r *trial) {
	r.Provider.Script(Rejected)
	r.start("worker")
	id := r.submit(0, "key")
	t := r.wait(id)
	switch {
	case t.Budget.Calls.Used == 0 && r.Provider.Requests() == 0:
		r.t.Skip("this kind makes no call, so none can be refused")
	case t.Status != onereply.StatusFailed || t.Reason != onereply.ReasonPermanent || t.Budget.Calls.Used != 1:
		r.t.Errorf("task %s %s after %d calls; a call that %s fails it at once", id, standing(t), t.Budget.Calls.Used, wentWrong(Rejected))
	}
}

func deadlinePasses(r *trial) {
	r.Provider.Script(Silent, Silent, Silent, Silent, Silent, Silent, Silent, Silent)
	worker := r.start("worker")
	s := r.submission(0, "key")
	s.Deadline = time.Now().Add(10 * time.Second)
	hold := worker.HoldAt(InCall)
	id := r.send(s)
	r.held(hold, id)
	hold.Release()
	r.ends(id, onereply.StatusFailed, onereply.ReasonDeadlineExceeded)
	r.workReturns(worker, "the task's deadline had passed")
}

// workReturns expects Work to notice that its context has ended.
func (r *trial) workReturns(p *Process, since string) {
	r.t.Helper()
	for range 50 {
		if p.working() == 0 {
			return
		}
		r.pause(100 * time.Millisecond)
	}
	r.t.Errorf("Work ignores its context: five seconds after %s it is still running", since)
}

func acceptAnswerLost(r *trial) {
	worker := r.start("worker")
	worker.LoseAnswers(1)
	id := r.submit(0, "key")
	r.completes(id)
	if t := r.task(id); t.Version != 1 {
		r.t.Errorf("task %s was worked on %d times; its first answer was saved", id, t.Version)
	}
}

func acceptRolledBack(r *trial) {
	worker := r.start("worker")
	worker.RollBack(1)
	id := r.submit(0, "key")
	r.completes(id)
}

// leaseRunsOut freezes the worker on its way into the accept for longer than its
// lease, with nobody there to take over: its answer is refused all the same.
func leaseRunsOut(r *trial) {
	worker := r.start("worker")
	hold := worker.HoldAt(Accepting)
	id := r.submit(0, "key")
	r.held(hold, id)
	worker.Freeze()
	r.pause(2 * time.Minute)
	hold.Release()
	worker.Thaw()
	r.endsAfterLoss(id)
	t := r.task(id)
	if t.Status == onereply.StatusCompleted && t.Version < 2 && t.Policy.Acceptance != onereply.FirstValid {
		r.t.Errorf("task %s was completed under a lease that had run out", id)
	}
}

// zombie freezes the worker with its answer in hand until another has taken
// over, and thaws it while that one works, or when it is done.
func zombie(filled bool) func(*trial) {
	return func(r *trial) {
		first := r.start("first")
		answer := first.HoldAt(Answered)
		id := r.submit(0, "key")
		r.held(answer, id)
		first.Freeze()
		second := r.start("second")
		if !filled {
			if t := r.task(id); r.maySecond() && (t.Policy.OnUnknown == onereply.UnknownRetry || t.Budget.Calls.Used == 0) {
				working := second.HoldAt(Claimed)
				r.held(working, id)
				answer.Release()
				first.Thaw()
				r.pause(5 * time.Second)
				working.Release()
			}
			r.endsAfterLoss(id)
			return
		}
		r.endsAfterLoss(id)
		answer.Release()
		first.Thaw()
	}
}

// maySecond reports whether the kind's policy allows a second attempt after a
// lease has run out.
func (r *trial) maySecond() bool {
	p := r.c.Kind.Policy.WithDefaults()
	return p.MaxAttempts >= 2 && p.MaxElapsed >= 2*time.Minute
}

func drained(r *trial) {
	first := r.Start(engine.Options{Name: "first", Sweep: -1, Drain: time.Second}, r.c.Kind)
	hold := first.HoldAt(InCall)
	id := r.submit(0, "key")
	r.held(hold, id)
	left := make(chan error, 1)
	go func() { left <- first.Stop() }()
	r.pause(10 * time.Second)
	if first.working() > 0 {
		r.t.Errorf("Work ignores its context: ten seconds into the shutdown of its process it is still running")
		hold.Release()
	}
	if err := <-left; err != nil {
		r.t.Logf("the process ended with: %v", err) // what it left running was reported above
	}
	r.start("second")
	r.endsAfterLoss(id)
}

func cancelledQueued(r *trial) {
	id := r.submit(0, "key")
	r.cancel(id)
	r.start("worker")
	r.pause(time.Minute)
	r.ends(id, onereply.StatusCancelled, "")
	if t := r.task(id); t.Version != 0 {
		r.t.Errorf("task %s was worked on after it was cancelled", id)
	}
}

func (r *trial) cancel(id onereply.TaskID) {
	r.t.Helper()
	if _, err := r.front().Engine.Cancel(r.t.Context(), engine.AnyScope, id); err != nil {
		r.t.Errorf("cancelling task %s: %v", id, err)
	}
}

func cancelledInCall(r *trial) {
	worker := r.start("worker")
	hold := worker.HoldAt(InCall)
	id := r.submit(0, "key")
	r.held(hold, id)
	r.cancel(id)
	r.workReturns(worker, "its task was cancelled")
	hold.Release()
	r.ends(id, onereply.StatusCancelled, "")
}

func cancelledBeforeAccept(r *trial) {
	worker := r.start("worker")
	hold := worker.HoldAt(Accepting)
	id := r.submit(0, "key")
	r.held(hold, id)
	r.cancel(id)
	hold.Release()
	r.ends(id, onereply.StatusCancelled, "")
}

// cancelledAtAccept lets both go at once: one of them wins, whole.
func cancelledAtAccept(r *trial) {
	worker := r.start("worker")
	hold := worker.HoldAt(Accepting)
	id := r.submit(0, "key")
	r.held(hold, id)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		// It may be told that the task has ended; what counts is that one of both did.
		_, err := r.front().Engine.Cancel(context.WithoutCancel(r.t.Context()), engine.AnyScope, id)
		if err != nil && r.task(id).Status != onereply.StatusCompleted {
			r.t.Errorf("cancelling task %s: %v", id, err)
		}
	}()
	hold.Release()
	<-gone
	if t := r.wait(id); t.Status != onereply.StatusCancelled && t.Status != onereply.StatusCompleted {
		r.t.Errorf("task %s %s; it was cancelled while its answer was being saved", id, standing(t))
	}
}

// resumed fails a task as a provider's refusal would and reopens it, twice under
// one key.
func resumed(r *trial) {
	r.Provider.Script(Rejected)
	r.start("worker")
	id := r.submit(0, "key")
	if t := r.wait(id); t.Status != onereply.StatusFailed {
		r.t.Skipf("this kind cannot be made to fail by its provider (the task %s)", standing(t))
	}
	r.early, r.outcome = nil, nil // a failed task may change in this way, and in no other
	for n := range 2 {
		done, err := r.front().Engine.Resume(r.t.Context(), engine.Resumption{Scope: engine.AnyScope, Task: id, Key: "again"})
		if err != nil || done.Created != (n == 0) {
			r.t.Errorf("resuming task %s, press %d: created %t, %v", id, n+1, done.Created, err)
		}
	}
	r.completes(id)
}
