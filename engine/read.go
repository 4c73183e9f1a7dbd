package engine

import (
	"context"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Task returns the whole task: input, response and attempts. The error matches
// onereply.ErrNotFound where there is none in that scope.
func (e *Engine) Task(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error) {
	tasks, err := e.store.Tasks(ctx, store.Query{IDs: []onereply.TaskID{id}, Whole: true})
	if err != nil {
		return onereply.Task{}, &onereply.Error{Op: "read", Guard: onereply.Guard{Task: id}, Err: err}
	}
	if len(tasks) == 0 || scope != AnyScope && tasks[0].Scope != scope {
		return onereply.Task{}, &onereply.Error{Op: "read", Guard: onereply.Guard{Task: id}, Err: onereply.ErrNotFound}
	}
	return tasks[0], nil
}

// Tasks returns the tasks that match the query.
func (e *Engine) Tasks(ctx context.Context, q store.Query) ([]onereply.Task, error) {
	return e.store.Tasks(ctx, q)
}

// Timeline returns every event of the task's life, oldest first.
func (e *Engine) Timeline(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error) {
	events, err := e.store.Timeline(ctx, scope, id)
	if err == nil && len(events) == 0 {
		err = onereply.ErrNotFound
	}
	if err != nil {
		return nil, &onereply.Error{Op: "timeline", Guard: onereply.Guard{Task: id}, Err: err}
	}
	return events, nil
}

// Stats counts what is in the store.
func (e *Engine) Stats(ctx context.Context) (store.Stats, error) { return e.store.Stats(ctx) }

// Wait returns the whole task once it has ended, or as it stands together with
// the context's cause. It needs a running Run: after Run has ended the error
// matches onereply.ErrClosed unless the task has ended already.
func (e *Engine) Wait(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error) {
	s, err := e.Subscribe(ctx, scope, id, "")
	if err != nil {
		return onereply.Task{}, err
	}
	defer s.Close()
	for {
		ended := s.ended(ctx)
		t, err := e.Task(context.WithoutCancel(ctx), scope, id)
		switch {
		case err != nil:
			return t, err
		case t.Status.Ended():
			return t, nil
		case ended != nil:
			return t, ended
		}
		// It had ended and was resumed since: wait for the next end.
		if err := s.moved(ctx); err != nil {
			return t, err
		}
	}
}
