package engine

// SKETCH for parallel work; replaced by the real files.

import (
	"context"
	"log/slog"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Options configure an engine. Zero members take the defaults named.
type Options struct {
	Store store.Store
	Kinds []onereply.Kind

	Workers int    // attempts at once in this process; default 32; negative: none, this process only submits and streams
	Name    string // of this process, in leases and timelines; default host name, pid and a random part

	Lease         time.Duration // default 30s
	Renew         time.Duration // default a third of Lease
	Poll          time.Duration // how often to look for work nobody announced; default 1s
	Sweep         time.Duration // how often to purge; default 5s; negative: never
	Drain         time.Duration // grace for running attempts once Run's context ends; default 20s
	KeyRetention  time.Duration // default 168h
	TaskRetention time.Duration // default 720h; at least KeyRetention

	Observer onereply.Observer   // default none
	Logger   *slog.Logger        // default slog.Default()
	IDs      *onereply.IDs       // default onereply.NewIDs()
	Draw     func(n int64) int64 // even in [0,n), for jitter; default math/rand/v2
}

// Engine ...
type Engine struct{}

// New checks the options and returns an engine that can submit at once and works while Run runs.
func New(o Options) (*Engine, error) { panic("sketch") }

// Run works until ctx ends, then drains: no new claims, running attempts get Drain to end, then are released. Call once.
func (e *Engine) Run(ctx context.Context) error { panic("sketch") }

// The onereply.Submitter methods.
func (e *Engine) Submit(ctx context.Context, s onereply.Submission) (onereply.Submitted, error) {
	panic("sketch")
}
func (e *Engine) SubmitTx(ctx context.Context, tx onereply.Tx, s onereply.Submission) (onereply.Submitted, error) {
	panic("sketch")
}
func (e *Engine) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	panic("sketch")
}
func (e *Engine) CancelTx(ctx context.Context, tx onereply.Tx, scope string, ids []onereply.TaskID) ([]onereply.Task, error) {
	panic("sketch")
}

// Nudge tells the engine that a SubmitTx has committed.
func (e *Engine) Nudge() { panic("sketch") }

// Cancel: the cancelled task (again: the same); ErrNotFound; ErrEnded with the task when it ended otherwise.
func (e *Engine) Cancel(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error) {
	panic("sketch")
}

// Resumption reopens a failed task with a fresh allowance.
type Resumption struct {
	Scope, Key  string
	Task        onereply.TaskID
	Deadline    time.Time // zero keeps the old one
	Fingerprint []byte    // of what the client sent; empty: of task and deadline
}

// Resume: Created is true when this call reopened it; a repeated key gives false and adds nothing.
// Errors: ErrNotFound, ErrEnded (completed or cancelled), ErrNotFailed (queued or running), ErrDeadlineExceeded, ErrKeyReused.
func (e *Engine) Resume(ctx context.Context, r Resumption) (onereply.Submitted, error) {
	panic("sketch")
}

// Task returns the whole task (input, response, attempts); ErrNotFound. Scope "*" is any.
func (e *Engine) Task(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error) {
	panic("sketch")
}

// Wait returns the whole task once it has ended, or as it stands with ctx's error.
func (e *Engine) Wait(ctx context.Context, scope string, id onereply.TaskID) (onereply.Task, error) {
	panic("sketch")
}

func (e *Engine) Tasks(ctx context.Context, q store.Query) ([]onereply.Task, error) { panic("sketch") }
func (e *Engine) Timeline(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error) {
	panic("sketch")
}
func (e *Engine) Stats(ctx context.Context) (store.Stats, error) { panic("sketch") }

// StreamEvent is one event of a task's stream.
type StreamEvent struct {
	ID      string         // "version.seq"; "end" for terminal events
	Type    string         // "delta", "reset", "completed", "failed", "cancelled"
	Version int64          // of reset
	Text    string         // of delta and reset
	Task    *onereply.Task // of terminal events: the whole task
}

// Subscribe opens a task's stream after the event id last ("" from the first event of the current draft).
// Errors: ErrNotFound. A reader that has "end" gets a subscription whose Next returns io.EOF at once.
func (e *Engine) Subscribe(ctx context.Context, scope string, id onereply.TaskID, last string) (*Subscription, error) {
	panic("sketch")
}

// Subscription is one reader's place in a stream. For one goroutine.
type Subscription struct{}

// Next returns the next event, waiting for it until ctx ends (then ctx's error; the place is kept). io.EOF after the terminal event.
func (s *Subscription) Next(ctx context.Context) (StreamEvent, error) { panic("sketch") }

// Close leaves the stream. It is safe to call twice.
func (s *Subscription) Close() { panic("sketch") }
