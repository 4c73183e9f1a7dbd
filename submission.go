package onereply

import (
	"context"
	"encoding/json"
	"time"
)

// Submission is one press of Send (or Regenerate, or Upload): a scope, an
// action, an idempotency key, and the inputs it is bound to. Make one with
// [Definition.Submission].
type Submission struct {
	Scope  string // the workspace
	Action string // which operation the key belongs to; the kind's name when empty
	Key    string // minted once per press

	Kind        string
	Input       json.RawMessage
	Fingerprint []byte // of what the client sent; see Fingerprint

	// TaskID is the id the task gets if this submission creates it. Empty: the
	// engine mints one. Setting it lets the caller's rows refer to the task.
	TaskID TaskID

	Delay     time.Duration // due this long after creation
	Deadline  time.Time     // absolute; zero: none
	OnUnknown UnknownPolicy // empty: the kind's

	// Answer, when set, makes this a keyed request without a task: the record
	// keeps the answer, and a replay gives it again. Kind and Input are empty.
	Answer json.RawMessage
}

// Submitted says what became of a submission.
type Submitted struct {
	// Created is true for exactly one submission of a key while its record is
	// retained, and false for every other, whatever the race (P1).
	Created bool
	// Task is the task with its present state. Zero for a request without a task.
	Task Task
	// Answer is the recorded answer of a keyed request without a task.
	Answer json.RawMessage
}

// Created is what a kind's Created hook receives for each task that this
// transaction creates.
type Created[In any] struct {
	Task Task
	In   In
}

// Ended is what a kind's Ended hook receives for each task that this
// transaction ends: completed, failed or cancelled, as Task.Status says.
type Ended[In, Out any] struct {
	Task Task
	In   In   // zero where a failed or cancelled task's input no longer decodes; Task.Input has it
	Out  *Out // the accepted candidate; nil unless completed
}

// Submitter is what a feature needs of the engine: to create tasks, alone or in
// a transaction with its own rows, and to cancel them together with the rows
// they were for.
type Submitter interface {
	// Submit creates the task of a submission, or finds the one its key names.
	// Errors: ErrKeyReused, ErrInvalid, ErrUnavailable, or what the kind's
	// Created hook returned. A caller that hangs up does not undo it.
	Submit(ctx context.Context, s Submission) (Submitted, error)
	// SubmitTx does the same inside the caller's transaction; nothing is visible
	// to workers before that commits (P2).
	SubmitTx(ctx context.Context, tx Tx, s Submission) (Submitted, error)
	// InTx runs f in a transaction of the engine's store.
	InTx(ctx context.Context, f func(context.Context, Tx) error) error
	// CancelTx cancels those of the tasks that have not ended, runs their Ended
	// hooks in tx, and returns the ones it cancelled. Lock order: call it before
	// touching rows of your own.
	CancelTx(ctx context.Context, tx Tx, scope string, ids []TaskID) ([]Task, error)
}
