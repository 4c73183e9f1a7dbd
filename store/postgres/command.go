package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// anyScope names every scope in a command, and in a reader's question.
const anyScope = "*"

// Command implements store.Writer. It locks the tasks in the order of their ids
// first, so that what it then reads and writes is one state.
func (s *Store) Command(ctx context.Context, tx onereply.Tx, entries []store.Command) ([]store.Commanded, error) {
	t, err := of(tx)
	if err != nil {
		return nil, err
	}
	verdicts := make([]store.Commanded, len(entries))
	stand, now, err := s.locked(ctx, t, entries)
	if err != nil {
		return nil, fault("command", err)
	}
	var cancels []int
	for i, e := range entries {
		task, found := stand[e.Task]
		if !found || e.Scope != anyScope && e.Scope != task.Scope {
			verdicts[i] = store.Commanded{Verdict: store.Missing}
			continue
		}
		verdicts[i].Task = task
		switch e.Op {
		case store.Cancel:
			cancels = append(cancels, i)
		case store.Resume:
			if err := s.resume(ctx, t, e, now, &verdicts[i]); err != nil {
				return nil, fault("resume", err)
			}
		default:
			return nil, fmt.Errorf("%w: command op %d", onereply.ErrInvalid, e.Op)
		}
	}
	if err := s.cancel(ctx, t, cancels, verdicts); err != nil {
		return nil, fault("cancel", err)
	}
	return verdicts, fault("command", s.fill(ctx, t, verdicts))
}

// locked locks the tasks that commands name. A resume locks the record of the
// task's key before it, as every submission does.
func (s *Store) locked(ctx context.Context, t *Tx, entries []store.Command) (map[onereply.TaskID]onereply.Task, time.Time, error) {
	var wanted []string
	for _, e := range entries {
		wanted = append(wanted, string(e.Task))
		if e.Op == store.Resume {
			if err := s.do(ctx, t, "submission_lock", nil, string(e.Task)); err != nil {
				return nil, time.Time{}, err
			}
		}
	}
	var now time.Time
	stand := make(map[onereply.TaskID]onereply.Task, len(entries))
	err := s.do(ctx, t, "task_lock", func(scan func(...any) error) error {
		var r taskRow
		if err := scan(append(r.columns(), &now)...); err != nil {
			return err
		}
		task := r.task()
		stand[task.ID] = task
		return nil
	}, wanted)
	return stand, now, err
}

func (s *Store) cancel(ctx context.Context, t *Tx, entries []int, verdicts []store.Commanded) error {
	if len(entries) == 0 {
		return nil
	}
	var wanted []string
	for _, i := range entries {
		wanted = append(wanted, string(verdicts[i].Task.ID))
	}
	done := make(map[onereply.TaskID]onereply.Task)
	err := s.do(ctx, t, "cancel", func(scan func(...any) error) error {
		var r taskRow
		if err := scan(r.columns()...); err != nil {
			return err
		}
		task := r.task()
		done[task.ID] = task
		return nil
	}, wanted)
	for _, i := range entries {
		v := &verdicts[i]
		task, now := done[v.Task.ID]
		switch {
		case now:
			v.Verdict, v.Task = store.Done, task
			delete(done, task.ID) // named twice: the second finds it cancelled
		case v.Task.Status == onereply.StatusCancelled, !v.Task.Status.Ended():
			v.Verdict = store.AlreadyDone
		default:
			v.Verdict = store.HasEnded
		}
	}
	return err
}

func (s *Store) resume(ctx context.Context, t *Tx, e store.Command, now time.Time, v *store.Commanded) error {
	before := v.Task
	if before.Status != onereply.StatusFailed {
		v.Verdict = store.NotFailed
		return nil
	}
	deadline := before.Budget.Deadline
	if !e.Deadline.IsZero() {
		deadline = e.Deadline
	}
	if !deadline.IsZero() && !deadline.After(now) {
		v.Verdict = store.DeadlinePassed
		return nil
	}
	// The failure's columns are about to be cleared: from here on it is history.
	failed := event{task: before.ID, kind: onereply.EventFailed, version: before.Version, attempt: before.Attempt,
		at: before.EndedAt, worker: before.Worker, code: string(before.Reason)}
	if before.Error != nil {
		failed.detail = before.Error.Message
	}
	if err := s.events(ctx, t, []event{failed}); err != nil {
		return err
	}
	err := s.do(ctx, t, "resume", func(scan func(...any) error) error {
		var r taskRow
		if err := scan(r.columns()...); err != nil {
			return err
		}
		v.Verdict, v.Task = store.Done, r.task()
		return nil
	}, string(e.Task), int32(e.Attempts), int32(e.Calls), orNull(e.Deadline), e.KeyRetention)
	if err != nil {
		return err
	}
	if v.Verdict != store.Done {
		return fmt.Errorf("resume of task %s changed nothing although it has failed", before.ID)
	}
	return s.events(ctx, t, []event{{task: before.ID, kind: onereply.EventResumed, version: before.Version}})
}

// fill adds what hooks need: the inputs, and the responses of completed tasks.
func (s *Store) fill(ctx context.Context, t *Tx, verdicts []store.Commanded) error {
	var at []int
	var tasks []onereply.Task
	for i, v := range verdicts {
		if v.Verdict != store.Missing {
			at, tasks = append(at, i), append(tasks, v.Task)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	if err := s.contents(ctx, t, tasks); err != nil {
		return err
	}
	for k, i := range at {
		verdicts[i].Task = tasks[k]
	}
	return nil
}
