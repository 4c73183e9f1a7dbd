package onereply

import (
	"context"
	"encoding/json"
)

// Assignment is the right to work on a task now, with everything the work
// needs: the worker reads nothing more.
type Assignment struct {
	Task  Task
	Guard Guard
	Input json.RawMessage

	// OpenCall is a call an earlier attempt sent and never closed: an outcome
	// that is not known (P10). Nil when there is none.
	OpenCall *OpenCall
	// State is what the last Progress of an earlier attempt recorded.
	State []byte
	// Spent, when set, says that the task is beyond its budget: it is handed
	// out only to be ended with this reason, and no attempt was added.
	Spent Reason
}

// OpenCall is a counted call whose outcome nobody recorded.
type OpenCall struct {
	Number    int       // the task's call count when it was counted; 1 is the first
	Attempt   AttemptID // that sent it
	Operation string    // the provider-side id it checkpointed; empty: none, so it cannot be recovered
}

// Resolution is what a lookup told of an open call.
type Resolution struct {
	Class Class
	Code  string // of a failure
	Usage Usage  // tokens the provider reported for the call
}

// Attempt is what a kind's Work may do. It is the only door to the database
// that work has, and every write through it carries the guard. Its methods are
// safe for concurrent use; they return an error matching [ErrFencedOut] once
// the assignment is no longer current.
type Attempt interface {
	// Assignment returns what was assigned.
	Assignment() Assignment

	// Call counts one call durably and then runs send with it (P8). One count
	// allows one request that can start work. Errors: ErrCallsExhausted when the
	// budget allows none; ErrOutcomeUnknown when an open call is unresolved and
	// the policy is to stop; else what send returned. A call that ends in an
	// error is classified by [Classify] and closed with that class.
	// The context given to send ends at the policy's call timeout.
	Call(ctx context.Context, send func(context.Context, Call) error) error

	// Resolve records that the outcome of the open call has become known, by
	// looking it up at the provider: with ClassAnswered it produced the
	// candidate; with any other class it did not, and another call may follow as
	// the policy has it. It does nothing when no call is open.
	Resolve(ctx context.Context, r Resolution) error

	// Draft appends to the live text. It is buffered and written in small
	// batches; an error may concern an earlier delta. It is a sign of life.
	Draft(ctx context.Context, delta string) error

	// Progress durably records state for whoever takes over. It is a sign of life.
	Progress(ctx context.Context, state []byte) error
}

// Call is one counted request to a provider that can start work.
type Call interface {
	// Send takes the call's one permission to send. The second time it returns
	// an error matching ErrUncounted. An http.Client from provider.Client takes
	// it by itself.
	Send() error

	// Checkpoint durably saves the provider-side operation id, so that a
	// takeover can look the call up instead of paying again.
	Checkpoint(ctx context.Context, operation string) error

	// Observe records what was seen on the wire; a later one replaces the
	// members it sets. An http.Client from provider.Client does it by itself.
	Observe(Observation)

	// Used records the tokens the provider reported for this call so far.
	Used(Usage)
}
