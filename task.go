package onereply

import (
	"encoding/json"
	"time"
)

// Status is where a task stands. Completed, Failed and Cancelled are terminal:
// nothing changes the task after them, except a resume of a failed one.
type Status string

// The five states of a task.
const (
	StatusQueued    Status = "queued"
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Ended reports whether the status is terminal.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Reason says which bound or decision ended a failed task. The last cause, in
// the provider's or the engine's words, is the task's Error.
type Reason string

// The reasons a failed task carries.
const (
	ReasonPermanent         Reason = "permanent"
	ReasonAttemptsExhausted Reason = "attempts_exhausted"
	ReasonCallsExhausted    Reason = "calls_exhausted"
	ReasonElapsedExhausted  Reason = "elapsed_exhausted"
	ReasonDeadlineExceeded  Reason = "deadline_exceeded"
	ReasonOutcomeUnknown    Reason = "outcome_unknown"
)

// Failure is a cause that a person or a program may read: a stable code and a
// short message that carries no secret.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Usage counts the tokens a provider reported. Zero means none reported.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens}
}

// Task is one piece of logical work with one response slot, as the store last
// saw it. Zero times mean "none". Its values are a copy; changing them changes
// nothing.
type Task struct {
	ID    TaskID
	Kind  string
	Scope string

	Status Status
	Reason Reason   // set when Status is failed
	Error  *Failure // the last cause; nil when there is none or the task completed

	Version    int64     // assignment version; 0 before the first claim
	Attempt    AttemptID // of the current or last assignment
	Worker     string
	LeaseUntil time.Time
	RunAt      time.Time // due then, while queued
	CreatedAt  time.Time
	EndedAt    time.Time

	Budget Budget
	Policy Rules

	Input    json.RawMessage // filled where the caller asked for it
	Response json.RawMessage // the accepted candidate; immutable (P3)

	Attempts []AttemptRecord // oldest first; filled where the caller asked for them
}

// AttemptOutcome says how an attempt ended.
type AttemptOutcome string

// The outcomes of an attempt. A running attempt has none.
const (
	OutcomeAccepted     AttemptOutcome = "accepted"
	OutcomeRetried      AttemptOutcome = "retried"
	OutcomeFailed       AttemptOutcome = "failed"
	OutcomeUnknown      AttemptOutcome = "unknown"
	OutcomeInterrupted  AttemptOutcome = "interrupted"
	OutcomeLeaseExpired AttemptOutcome = "lease_expired"
	OutcomeFencedOut    AttemptOutcome = "fenced_out"
	OutcomeCancelled    AttemptOutcome = "cancelled"
)

// AttemptRecord is one execution under one assignment, as recorded.
type AttemptRecord struct {
	ID        AttemptID
	Version   int64
	Worker    string
	StartedAt time.Time
	EndedAt   time.Time
	Outcome   AttemptOutcome
	Error     *Failure
	Calls     int    // calls counted by this attempt
	Operation string // the last operation it checkpointed
	Usage     Usage
}
