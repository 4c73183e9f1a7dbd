package onereplytest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
)

// trial is one boundary under way.
type trial struct {
	*World
	t    *testing.T
	name string
	c    Case

	door    *Process                 // submits, cancels and waits; never works
	created map[onereply.TaskID]bool // by this boundary's submissions
	early   []onereply.TaskID        // ended already, and must stay as they are
	outcome []onereply.Task          // how those stood
}

// front is the process that people talk to.
func (r *trial) front() *Process {
	if r.door == nil {
		r.door = r.Start(engine.Options{Name: "front", Workers: -1, Sweep: -1}, r.c.Kind)
	}
	return r.door
}

// start starts a process that works.
func (r *trial) start(name string) *Process {
	return r.Start(engine.Options{Name: name, Sweep: -1}, r.c.Kind)
}

// submission makes the i-th submission or ends the boundary.
func (r *trial) submission(i int, key string) onereply.Submission {
	r.t.Helper()
	s, err := r.c.Submission(i, key)
	if err != nil {
		r.t.Fatalf("submission %d cannot be made: %v", i, err)
	}
	return s
}

// submit submits and expects to have created a task.
func (r *trial) submit(i int, key string) onereply.TaskID {
	r.t.Helper()
	return r.send(r.submission(i, key))
}

func (r *trial) send(s onereply.Submission) onereply.TaskID {
	r.t.Helper()
	done, err := r.front().Engine.Submit(r.t.Context(), s)
	if err != nil {
		r.t.Fatalf("submitting failed: %v", err)
	}
	if !done.Created {
		r.t.Errorf("submitting %s created nothing: the key names task %s already", s.Key, done.Task.ID)
	}
	r.created[done.Task.ID] = true
	return done.Task.ID
}

// task reads a task, whatever its scope.
func (r *trial) task(id onereply.TaskID) onereply.Task {
	r.t.Helper()
	t, err := r.front().Engine.Task(r.t.Context(), engine.AnyScope, id)
	if err != nil {
		r.t.Fatalf("reading task %s: %v", id, err)
	}
	return t
}

// wait waits for the task's end, ten virtual hours at most.
func (r *trial) wait(id onereply.TaskID) onereply.Task {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Hour)
	defer cancel()
	t, err := r.front().Engine.Wait(ctx, engine.AnyScope, id)
	if err != nil {
		r.t.Fatalf("task %s has not ended: it is %s after %d attempts and %d calls (%v)",
			id, t.Status, t.Budget.Attempts.Used, t.Budget.Calls.Used, err)
	}
	r.early, r.outcome = append(r.early, id), append(r.outcome, t)
	return t
}

// completes waits for the end and expects a response.
func (r *trial) completes(id onereply.TaskID) {
	r.t.Helper()
	r.ends(id, onereply.StatusCompleted, "")
}

// ends waits for the end and expects this one.
func (r *trial) ends(id onereply.TaskID, status onereply.Status, reason onereply.Reason) {
	r.t.Helper()
	t := r.wait(id)
	if t.Status != status || reason != "" && t.Reason != reason {
		r.t.Errorf("task %s %s, want %s", id, standing(t), describe(status, reason, nil))
	}
}

// endsAfterLoss expects what the kind's policy says where the worker was lost. A
// call that was counted and not closed is an outcome that nobody knows, sent or
// not: the end of the task, or another call within its budget (P10).
func (r *trial) endsAfterLoss(id onereply.TaskID) {
	r.t.Helper()
	t := r.task(id)
	inCall := !t.Status.Ended() && t.Budget.Calls.Used > 0
	switch {
	case t.Status == onereply.StatusCompleted:
		r.completes(id)
	case inCall && t.Policy.OnUnknown == onereply.UnknownStop && !r.recovers(id):
		r.ends(id, onereply.StatusFailed, onereply.ReasonOutcomeUnknown)
	case !r.maySecond() || inCall && t.Budget.Calls.Max < 2:
		r.wait(id) // its budget is over; that it ends is enough
	default:
		r.completes(id)
	}
}

// recovers reports whether an attempt left an operation to look up: then even an
// unknown outcome may become known.
func (r *trial) recovers(id onereply.TaskID) bool {
	for _, a := range r.task(id).Attempts {
		if a.Operation != "" {
			return true
		}
	}
	return false
}

// held waits until someone is held. A kind that ends without having been there
// makes no call, and the boundary is not for it.
func (r *trial) held(h *Hold, id onereply.TaskID) {
	r.t.Helper()
	t := r.task(id)
	for range 60 {
		if h.within(time.Minute) {
			return
		}
		if t = r.task(id); t.Status.Ended() {
			break
		}
	}
	if t.Status.Ended() && (h.point == InCall || h.point == Counted) && t.Budget.Calls.Used == 0 {
		r.t.Skip("this kind makes no call, so nothing can happen in the middle of one")
	}
	if h.point == InCall {
		r.t.Fatalf("nothing has reached the provider (task %s %s): does Work send through World.Provider?", id, standing(t))
	}
	r.t.Fatalf("nothing has reached the point %q (task %s %s)", h.point, id, standing(t))
}

// pause lets virtual time pass.
func (r *trial) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func standing(t onereply.Task) string { return "is " + describe(t.Status, t.Reason, t.Error) }

func describe(status onereply.Status, reason onereply.Reason, cause *onereply.Failure) string {
	s := string(status)
	if reason != "" {
		s += fmt.Sprintf(" (%s)", reason)
	}
	if cause != nil {
		s += fmt.Sprintf(" because of %s: %s", cause.Code, cause.Message)
	}
	return s
}
