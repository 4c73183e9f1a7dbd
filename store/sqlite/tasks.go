package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"database/sql"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// taskRow is a task with the column that the contract's task does not show.
type taskRow struct {
	onereply.Task
	openCall int
}

// scanTask reads the columns of task.sql and of every statement that returns a
// whole task, in their order.
func scanTask(r row) taskRow {
	t := taskRow{openCall: r.count(18)}
	t.ID, t.Kind, t.Scope = onereply.TaskID(r.text(0)), r.text(1), r.text(2)
	t.Status, t.Reason = onereply.Status(r.text(3)), onereply.Reason(r.text(4))
	t.Error = failure(r.text(5), r.text(6))
	t.Version, t.Attempt, t.Worker = r.integer(7), onereply.AttemptID(r.text(8)), r.text(9)
	t.LeaseUntil, t.RunAt = moment(r.integer(10)), moment(r.integer(11))
	t.CreatedAt, t.EndedAt = moment(r.integer(12)), moment(r.integer(13))
	t.Budget = onereply.Budget{
		Attempts:   onereply.Bound{Used: r.count(14), Max: r.count(15)},
		Calls:      onereply.Bound{Used: r.count(16), Max: r.count(17)},
		ElapsedMax: span(r.integer(19)), ElapsedFrom: moment(r.integer(20)), Deadline: moment(r.integer(21)),
	}
	t.Policy = onereply.Rules{
		OnUnknown: onereply.UnknownPolicy(r.text(22)), Acceptance: onereply.Acceptance(r.text(23)),
	}
	return t
}

func failure(code, message string) *onereply.Failure {
	if code == "" && message == "" {
		return nil
	}
	return &onereply.Failure{Code: code, Message: message}
}

// oneTask runs a statement that returns a task, or none.
func (q *querier) oneTask(ctx context.Context, name string, args ...any) (t taskRow, found bool, err error) {
	_, err = q.each(ctx, name, func(r row) error {
		t, found = scanTask(r), true
		return nil
	}, args...)
	return t, found, err
}

func (q *querier) task(ctx context.Context, id onereply.TaskID) (taskRow, bool, error) {
	return q.oneTask(ctx, "task", "task", id)
}

func (q *querier) input(ctx context.Context, id onereply.TaskID) (raw json.RawMessage, err error) {
	_, err = q.each(ctx, "input", func(r row) error { raw = r.bytes(0); return nil }, "task", id)
	return raw, err
}

func (q *querier) response(ctx context.Context, id onereply.TaskID) (raw json.RawMessage, err error) {
	_, err = q.each(ctx, "response", func(r row) error { raw = r.bytes(0); return nil }, "task", id)
	return raw, err
}

// fill adds the input and, where completed, the response.
func (q *querier) fill(ctx context.Context, t *onereply.Task) (err error) {
	if t.Input, err = q.input(ctx, t.ID); err != nil {
		return err
	}
	if t.Status == onereply.StatusCompleted {
		t.Response, err = q.response(ctx, t.ID)
	}
	return err
}

// attempts adds the attempts, each with what its calls add up to.
func (q *querier) attempts(ctx context.Context, t *onereply.Task) error {
	at := map[int64]int{}
	_, err := q.each(ctx, "attempts_read", func(r row) error {
		at[r.integer(0)] = len(t.Attempts)
		t.Attempts = append(t.Attempts, onereply.AttemptRecord{
			ID: onereply.AttemptID(r.text(1)), Version: r.integer(0), Worker: r.text(2),
			StartedAt: moment(r.integer(3)), EndedAt: moment(r.integer(4)),
			Outcome: onereply.AttemptOutcome(r.text(5)), Error: failure(r.text(6), r.text(7)),
		})
		return nil
	}, "task", t.ID)
	if err != nil {
		return err
	}
	_, err = q.each(ctx, "calls_read", func(r row) error {
		i, ok := at[r.integer(1)]
		if !ok {
			return nil // counted by a version that only ended the task
		}
		a := &t.Attempts[i]
		a.Calls++
		a.Usage = a.Usage.Add(onereply.Usage{InputTokens: r.count(7), OutputTokens: r.count(8)})
		if operation := r.text(9); operation != "" {
			a.Operation = operation
		}
		return nil
	}, "task", t.ID)
	return err
}

// snapshot runs f on one consistent view of what is committed.
func (s *Store) snapshot(ctx context.Context, op string, f func(*querier) error) (err error) {
	if s.closed.Load() {
		return &onereply.Error{Op: op, Err: onereply.ErrClosed}
	}
	tx, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fault(op, err)
	}
	err = f(&querier{s: s, tx: tx})
	if ended := tx.Rollback(); !errors.Is(ended, sql.ErrTxDone) { // the context ended it
		err = errors.Join(err, ended)
	}
	return fault(op, err)
}

// Tasks implements store.Reader.
func (s *Store) Tasks(ctx context.Context, query store.Query) ([]onereply.Task, error) {
	var tasks []onereply.Task
	err := s.snapshot(ctx, "tasks", func(q *querier) error {
		var err error
		if tasks, err = q.selectTasks(ctx, query); err != nil || !query.Whole {
			return err
		}
		for i := range tasks {
			if err := errors.Join(q.fill(ctx, &tasks[i]), q.attempts(ctx, &tasks[i])); err != nil {
				return err
			}
		}
		return nil
	})
	return tasks, err
}

// afterAll sorts after every task id.
var afterAll = strings.Repeat("\U0010FFFF", 4)

func (q *querier) selectTasks(ctx context.Context, query store.Query) (tasks []onereply.Task, err error) {
	if len(query.IDs) > 0 {
		for _, id := range query.IDs {
			t, found, err := q.task(ctx, id)
			if err != nil {
				return nil, err
			}
			if found {
				tasks = append(tasks, t.Task)
			}
		}
		return tasks, nil
	}
	limit := query.Limit
	if limit <= 0 {
		limit = -1 // all
	}
	after := string(query.After)
	if after == "" {
		after = afterAll
	}
	_, err = q.each(ctx, "tasks_page", func(r row) error {
		tasks = append(tasks, scanTask(r).Task)
		return nil
	}, "after", after, "scope", query.Scope, "status", query.Status, "kind", query.Kind, "limit", limit)
	return tasks, err
}
