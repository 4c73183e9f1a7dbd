package httpapi

import (
	"context"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
)

// Engine is what the API asks of *engine.Engine.
type Engine interface {
	Tasks
	Commands
	Subscriber
}

// Tasks reads tasks.
type Tasks interface {
	// Task returns the whole task, or ErrNotFound.
	Task(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error)
	// Tasks lists, newest first.
	Tasks(ctx context.Context, q store.Query) ([]onereply.Task, error)
	// Wait returns the task once it has ended, or as it stands with ctx's error.
	Wait(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error)
	// Timeline returns every event of a task's life, or ErrNotFound.
	Timeline(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error)
}

// Commands does what a person asks of a task.
type Commands interface {
	// Cancel returns the cancelled task. Errors: ErrNotFound; ErrEnded, with the
	// task, when it ended otherwise.
	Cancel(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error)
	// Resume reopens a failed task once per key. Errors: ErrNotFound, ErrEnded,
	// ErrNotFailed, ErrDeadlineExceeded, ErrKeyReused.
	Resume(ctx context.Context, r engine.Resumption) (onereply.Submitted, error)
}

// Subscriber opens event streams.
type Subscriber interface {
	// Subscribe opens a task's stream after the event id last, or ErrNotFound.
	Subscribe(ctx context.Context, scope string, id onereply.TaskID, last string) (*engine.Subscription, error)
}
