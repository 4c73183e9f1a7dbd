package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// AnyScope stands for every scope where an operator may see them all.
const AnyScope = "*"

// Cancel ends a task that has not ended: queued or running, it becomes cancelled
// with its Ended hook in the same transaction, and the attempt that works on it
// loses its context with cause onereply.ErrCancelled. A cancelled task is
// returned as it is. Errors: ErrNotFound; ErrEnded, with the task, when it
// ended otherwise.
func (e *Engine) Cancel(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error) {
	var verdict store.CommandVerdict
	err := e.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
		done, err := e.cancelTx(ctx, tx, scope, []onereply.TaskID{id})
		if err == nil {
			verdict = done[0].Verdict
		}
		return err
	})
	if err != nil {
		return onereply.Task{}, &onereply.Error{Op: "cancel", Guard: onereply.Guard{Task: id}, Err: err}
	}
	if verdict == store.Missing {
		return onereply.Task{}, &onereply.Error{Op: "cancel", Guard: onereply.Guard{Task: id}, Err: onereply.ErrNotFound}
	}
	t, err := e.Task(ctx, scope, id)
	if err == nil && verdict == store.HasEnded {
		err = &onereply.Error{Op: "cancel", Guard: onereply.Guard{Task: id}, Err: fmt.Errorf("%w as %s", onereply.ErrEnded, t.Status)}
	}
	return t, err
}

// CancelTx cancels, in the caller's transaction, those of the tasks that have
// not ended, runs their Ended hooks, and returns the ones it cancelled. Lock
// order: call it before touching rows of your own.
func (e *Engine) CancelTx(ctx context.Context, tx onereply.Tx, scope string, ids []onereply.TaskID) ([]onereply.Task, error) {
	done, err := e.cancelTx(ctx, tx, scope, ids)
	if err != nil {
		return nil, err
	}
	var cancelled []onereply.Task
	for _, d := range done {
		if d.Verdict == store.Done {
			cancelled = append(cancelled, d.Task)
		}
	}
	return cancelled, nil
}

func (e *Engine) cancelTx(ctx context.Context, tx onereply.Tx, scope string, ids []onereply.TaskID) ([]store.Commanded, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	commands := make([]store.Command, len(ids))
	for i, id := range ids {
		commands[i] = store.Command{Op: store.Cancel, Scope: scope, Task: id}
	}
	done, err := e.store.Command(ctx, tx, commands)
	if err != nil {
		return nil, err
	}
	var ended []onereply.Task
	for _, d := range done {
		if d.Verdict == store.Done {
			ended = append(ended, d.Task)
		}
	}
	if err := e.runEnded(ctx, tx, ended); err != nil {
		return nil, err
	}
	for _, t := range ended {
		afterCommit(ctx, func() {
			e.cancelHere(t.ID)
			e.hub.dirty()
			e.o.Observer.Observe(onereply.Step{Type: onereply.EventCancelled, Task: t.ID, Kind: t.Kind, Version: t.Version})
		})
	}
	return done, nil
}

// Resumption asks for a failed task to be reopened with a fresh allowance.
type Resumption struct {
	Scope string
	Task  onereply.TaskID
	Key   string // of this press, 1 to 255 bytes; repeated, it adds nothing
	// Deadline replaces the task's; zero keeps it. One that has passed must be
	// given anew.
	Deadline time.Time
	// Fingerprint of what the client sent. Empty: of task and deadline.
	Fingerprint []byte
}

// Resume reopens a failed task: the max of its attempts and calls rise by the
// kind's defaults, what was used stays used, elapsed time counts from now, and
// the record of its submission is renewed. Created is true when this call
// reopened it; with a key that did so before nothing changes, and the task comes
// back as it stands. Errors: ErrNotFound, ErrEnded (completed or cancelled),
// ErrNotFailed (queued or running), ErrDeadlineExceeded, ErrKeyReused.
func (e *Engine) Resume(ctx context.Context, r Resumption) (onereply.Submitted, error) {
	fail := func(err error) (onereply.Submitted, error) {
		return onereply.Submitted{}, &onereply.Error{Op: "resume", Guard: onereply.Guard{Task: r.Task}, Err: err}
	}
	before, err := e.Task(ctx, r.Scope, r.Task)
	if err != nil {
		return onereply.Submitted{}, err
	}
	k, err := e.kind(before.Kind)
	if err != nil {
		return fail(err)
	}
	if !validDeadline(r.Deadline) {
		return fail(fmt.Errorf("%w: the deadline must lie in the years 1971 to 9999", onereply.ErrInvalid))
	}
	s, err := e.prepare(resumeSubmission(r, before))
	if err != nil {
		return fail(err)
	}
	var created bool
	err = e.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
		done, err := e.submitTx(ctx, tx, []onereply.Submission{s})
		if err != nil {
			return err
		}
		if done[0].err != nil {
			return done[0].err
		}
		if created = done[0].value.Created; !created {
			return nil
		}
		return e.reopen(ctx, tx, r, k.Policy)
	})
	if err != nil {
		return fail(err)
	}
	t, err := e.Task(ctx, r.Scope, r.Task)
	return onereply.Submitted{Created: created, Task: t, Answer: s.Answer}, err
}

func resumeSubmission(r Resumption, t onereply.Task) onereply.Submission {
	answer, err := json.Marshal(map[string]string{"task": string(t.ID)})
	if err != nil {
		panic("onereply: encoding a task id: " + err.Error()) // a map of strings always encodes
	}
	print := r.Fingerprint
	if len(print) == 0 {
		print = onereply.Fingerprint("resume", fmt.Appendf(nil, "%s %d", r.Task, r.Deadline.UnixMilli()))
	}
	return onereply.Submission{Scope: t.Scope, Action: "resume", Key: r.Key, Fingerprint: print, Answer: answer}
}

func (e *Engine) reopen(ctx context.Context, tx onereply.Tx, r Resumption, p onereply.Policy) error {
	done, err := e.store.Command(ctx, tx, []store.Command{{
		Op: store.Resume, Scope: r.Scope, Task: r.Task, Attempts: p.MaxAttempts, Calls: p.MaxCalls,
		Deadline: r.Deadline, KeyRetention: e.o.KeyRetention,
	}})
	if err != nil {
		return err
	}
	t := done[0].Task
	switch done[0].Verdict {
	case store.Done:
		afterCommit(ctx, func() {
			e.Nudge()
			e.hub.dirty()
			e.o.Observer.Observe(onereply.Step{Type: onereply.EventResumed, Task: t.ID, Kind: t.Kind, Version: t.Version})
		})
		return nil
	case store.Missing:
		return onereply.ErrNotFound
	case store.DeadlinePassed:
		return onereply.ErrDeadlineExceeded
	case store.NotFailed:
		if t.Status.Ended() {
			return fmt.Errorf("%w as %s", onereply.ErrEnded, t.Status)
		}
		return fmt.Errorf("%w: it is %s", onereply.ErrNotFailed, t.Status)
	}
	return errors.New("the store gave no verdict")
}
