package onereplytest

import (
	"context"
	"errors"
	"sync"

	"github.com/onereply/onereply"
)

// Recorder takes the place of the engine for a feature that makes its own
// submissions: it keeps what is submitted and submits nothing, so that a [Case]
// can hand on what the feature would have sent. It is safe for concurrent use.
type Recorder struct {
	w *World

	mu   sync.Mutex
	last *onereply.Submission
}

// Recorder returns a new one.
func (w *World) Recorder() *Recorder { return &Recorder{w: w} }

var _ onereply.Submitter = (*Recorder)(nil)

// Take returns what was submitted since the last Take.
func (r *Recorder) Take() (onereply.Submission, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return onereply.Submission{}, errors.New("nothing was submitted to the recorder")
	}
	s := *r.last
	r.last = nil
	return s, nil
}

// Submit keeps the submission and says that it created a task.
func (r *Recorder) Submit(_ context.Context, s onereply.Submission) (onereply.Submitted, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = &s
	return onereply.Submitted{Created: true, Task: onereply.Task{
		ID: s.TaskID, Kind: s.Kind, Scope: s.Scope, Status: onereply.StatusQueued, Input: s.Input,
	}}, nil
}

// SubmitTx does the same.
func (r *Recorder) SubmitTx(ctx context.Context, _ onereply.Tx, s onereply.Submission) (onereply.Submitted, error) {
	return r.Submit(ctx, s)
}

// InTx runs f in a transaction of the world's file.
func (r *Recorder) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	return r.w.Store.InTx(ctx, f)
}

// CancelTx finds nothing to cancel.
func (r *Recorder) CancelTx(context.Context, onereply.Tx, string, []onereply.TaskID) ([]onereply.Task, error) {
	return nil, nil
}
