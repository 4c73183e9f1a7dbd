package onereply

import (
	"errors"
	"fmt"
)

// Sentinels that a caller decides by. Errors that carry ids wrap them, so
// compare with errors.Is.
var (
	// ErrKeyReused: the idempotency key is bound to other inputs; nothing was written (P1).
	ErrKeyReused = errors.New("idempotency key reused with other inputs")
	// ErrNotFound: no such task, or it belongs to another scope.
	ErrNotFound = errors.New("not found")
	// ErrFencedOut: a guarded write was refused (P5). See [Refusal] for why.
	ErrFencedOut = errors.New("fenced out")
	// ErrEnded: the task has ended and the request would change it.
	ErrEnded = errors.New("task has ended")
	// ErrNotFailed: only a failed task can be resumed.
	ErrNotFailed = errors.New("task has not failed")
	// ErrDeadlineExceeded: the task's deadline has passed and none was given anew.
	ErrDeadlineExceeded = errors.New("deadline exceeded")
	// ErrUnavailable: the store cannot be reached or written now; try again later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrCommitUnknown: the transaction may or may not have committed; read before acting (P11).
	// It always matches ErrUnavailable too.
	ErrCommitUnknown = errors.New("commit outcome unknown")
	// ErrCallsExhausted: the call budget allows no further call.
	ErrCallsExhausted = errors.New("call budget exhausted")
	// ErrOutcomeUnknown: an earlier call's outcome is unknown and the policy is to stop (P10).
	ErrOutcomeUnknown = errors.New("outcome of an earlier call is unknown")
	// ErrUncounted: a request that can start work was about to leave without being counted (P8).
	ErrUncounted = errors.New("uncounted send refused")
	// ErrInvalid: the caller's values make no sense; the message says which.
	ErrInvalid = errors.New("invalid")
	// ErrClosed: the engine or store has been closed.
	ErrClosed = errors.New("closed")
)

// Causes with which an attempt's context ends; read them with context.Cause.
var (
	// ErrLeaseLost: the assignment expired or was taken over. Nothing this attempt writes will be kept.
	ErrLeaseLost = errors.New("lease lost")
	// ErrCancelled: the task was cancelled.
	ErrCancelled = errors.New("task cancelled")
	// ErrDraining: the process is shutting down and its grace is over.
	ErrDraining = errors.New("draining")
	// ErrCallTimeout: the call took longer than the policy allows.
	ErrCallTimeout = errors.New("call timeout")
)

// Error is an operator's error: what was being done, to which task and attempt,
// why it failed and what to try. Its text never reaches an HTTP client.
type Error struct {
	Op    string // such as "accept"
	Guard Guard  // zero members are left out of the text
	Err   error
	Hint  string
}

// Error joins the parts in one line.
func (e *Error) Error() string {
	s := e.Op
	switch {
	case e.Guard.Attempt != "":
		s += " " + e.Guard.String()
	case e.Guard.Task != "":
		s += " task " + string(e.Guard.Task)
	}
	s += ": " + e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func invalid(message string) error { return fmt.Errorf("%w: %s", ErrInvalid, message) }
