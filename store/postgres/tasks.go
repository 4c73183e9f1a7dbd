package postgres

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// taskRow reads the columns of a task, in the order in which every statement
// that returns one gives them. All may be null where the row is the empty side
// of a join; then found is false.
type taskRow struct {
	id, kind, scope, status, reason, errorCode, errorMessage, attempt, worker, onUnknown, acceptance sql.NullString
	version, attemptsUsed, attemptsMax, callsUsed, callsMax, openCall                                sql.NullInt64
	leaseUntil, runAt, createdAt, endedAt, elapsedFrom, deadline                                     sql.NullTime
	elapsedMax                                                                                       interval
}

func (r *taskRow) columns() []any {
	return []any{
		&r.id, &r.kind, &r.scope, &r.status, &r.reason, &r.errorCode, &r.errorMessage, &r.version, &r.attempt, &r.worker,
		&r.leaseUntil, &r.runAt, &r.createdAt, &r.endedAt, &r.attemptsUsed, &r.attemptsMax, &r.callsUsed, &r.callsMax,
		&r.openCall, &r.elapsedMax, &r.elapsedFrom, &r.deadline, &r.onUnknown, &r.acceptance,
	}
}

func (r *taskRow) task() onereply.Task {
	t := onereply.Task{
		ID: onereply.TaskID(r.id.String), Kind: r.kind.String, Scope: r.scope.String,
		Status: onereply.Status(r.status.String), Reason: onereply.Reason(r.reason.String),
		Error:   failure(r.errorCode.String, r.errorMessage.String),
		Version: r.version.Int64, Attempt: onereply.AttemptID(r.attempt.String), Worker: r.worker.String,
		LeaseUntil: utc(r.leaseUntil), RunAt: utc(r.runAt), CreatedAt: utc(r.createdAt), EndedAt: utc(r.endedAt),
		Budget: onereply.Budget{
			Attempts:   onereply.Bound{Used: int(r.attemptsUsed.Int64), Max: int(r.attemptsMax.Int64)},
			Calls:      onereply.Bound{Used: int(r.callsUsed.Int64), Max: int(r.callsMax.Int64)},
			ElapsedMax: time.Duration(r.elapsedMax), ElapsedFrom: utc(r.elapsedFrom), Deadline: utc(r.deadline),
		},
	}
	t.Policy = onereply.Rules{
		OnUnknown: onereply.UnknownPolicy(r.onUnknown.String), Acceptance: onereply.Acceptance(r.acceptance.String),
	}
	return t
}

func utc(t sql.NullTime) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

func failure(code, message string) *onereply.Failure {
	if code == "" && message == "" {
		return nil
	}
	return &onereply.Failure{Code: code, Message: message}
}

// orNull is a time, or null for none.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Tasks implements store.Reader.
func (s *Store) Tasks(ctx context.Context, q store.Query) (tasks []onereply.Task, err error) {
	add := func(scan func(...any) error) error {
		var r taskRow
		if err := scan(r.columns()...); err != nil {
			return err
		}
		tasks = append(tasks, r.task())
		return nil
	}
	if len(q.IDs) > 0 {
		err = s.do(ctx, s.db, "task", add, ids(q.IDs))
		tasks = inOrder(tasks, q.IDs)
	} else {
		var limit *int64 // null: all
		if q.Limit > 0 {
			n := int64(q.Limit)
			limit = &n
		}
		err = s.do(ctx, s.db, "tasks_page", add, string(q.After), q.Scope, string(q.Status), q.Kind, limit)
	}
	if err == nil && q.Whole {
		err = s.whole(ctx, s.db, tasks)
	}
	return tasks, fault("tasks", err)
}

func ids(all []onereply.TaskID) []string {
	text := make([]string, len(all))
	for i, id := range all {
		text[i] = string(id)
	}
	return text
}

// inOrder puts tasks into the order of the ids that were asked for.
func inOrder(tasks []onereply.Task, order []onereply.TaskID) []onereply.Task {
	byID := make(map[onereply.TaskID]onereply.Task, len(tasks))
	for _, t := range tasks {
		byID[t.ID] = t
	}
	tasks = tasks[:0]
	for _, id := range order {
		if t, ok := byID[id]; ok {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// contents adds the inputs and, where completed, the responses.
func (s *Store) contents(ctx context.Context, r runner, tasks []onereply.Task) error {
	at := index(tasks)
	return s.do(ctx, r, "contents", func(scan func(...any) error) error {
		var id, input string
		var response, attempt sql.NullString
		var version sql.NullInt64
		var accepted sql.NullTime
		if err := scan(&id, &input, &response, &attempt, &version, &accepted); err != nil {
			return err
		}
		for _, i := range at[onereply.TaskID(id)] {
			tasks[i].Input = []byte(input)
			if response.Valid && tasks[i].Status == onereply.StatusCompleted {
				tasks[i].Response = []byte(response.String)
			}
		}
		return nil
	}, named(tasks))
}

func index(tasks []onereply.Task) map[onereply.TaskID][]int {
	at := make(map[onereply.TaskID][]int, len(tasks))
	for i, t := range tasks {
		at[t.ID] = append(at[t.ID], i)
	}
	return at
}

func named(tasks []onereply.Task) []string {
	text := make([]string, len(tasks))
	for i, t := range tasks {
		text[i] = string(t.ID)
	}
	slices.Sort(text)
	return slices.Compact(text)
}

// whole adds contents and attempts, each with what its calls add up to.
func (s *Store) whole(ctx context.Context, r runner, tasks []onereply.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	if err := s.contents(ctx, r, tasks); err != nil {
		return err
	}
	attempts, err := s.attemptRows(ctx, r, named(tasks))
	if err != nil {
		return err
	}
	calls, err := s.callRows(ctx, r, named(tasks))
	if err != nil {
		return err
	}
	for i := range tasks {
		t := &tasks[i]
		for _, a := range attempts[t.ID] {
			record := a.record
			for _, c := range calls[t.ID] {
				if c.version != record.Version {
					continue
				}
				record.Calls++
				record.Usage = record.Usage.Add(c.usage)
				if c.operation != "" {
					record.Operation = c.operation
				}
			}
			t.Attempts = append(t.Attempts, record)
		}
	}
	return nil
}
