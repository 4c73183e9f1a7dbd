// Package store holds what the engine asks of a database, in three roles:
// [Writer], [Reader] and [Keeper]. An adapter implements all of them (see
// [Store]) and is proven by store/storetest.
//
// The contract is shaped for batches: methods take slices and return one
// verdict per entry, in the order of the entries. One is a batch of one. All
// decisions by time are made by the database's clock, read after the lock on
// the rows is held; callers pass durations, never "now" (P5).
//
// Errors are for the batch as a whole: the store could not be reached
// (matching onereply.ErrUnavailable), or a commit's answer was lost
// (onereply.ErrCommitUnknown). What concerns one entry is its verdict.
package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/onereply/onereply"
)

// Store is a database as the engine sees it. All methods are safe for
// concurrent use.
type Store interface {
	Writer
	Reader
	Keeper
}

// Writer changes tasks.
type Writer interface {
	// InTx runs f in a transaction that commits when f returns nil and rolls
	// back otherwise; f's error is returned as it is. Transactions of concurrent
	// callers may share one commit, each undone alone when its f fails. The
	// context given to f ends with ctx. f must not call InTx, Claim or Record.
	InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error

	// Submit creates tasks with their keys, or finds what the keys already name
	// (P1, P2). Entries of one batch must not share a key. The loser of a race
	// gets the winner's task.
	Submit(ctx context.Context, tx onereply.Tx, entries []Submission) ([]Submitted, error)

	// Claim hands out assignments in a transaction of its own: each raises the
	// version (P5), closes the earlier attempt of a takeover as lease_expired,
	// and adds an attempt unless the task is beyond its budget (spent).
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// Record makes guarded writes of running attempts in a transaction of its
	// own: renew, count, checkpoint, draft and the like. A guard may stand in
	// several entries; they are carried out in order. A refused entry is
	// recorded as a fenced_out event in the same transaction, one counted event
	// per attempt and reason, unless the task was cancelled or the assignment has
	// ended it itself: that an attempt learns of these is no news.
	Record(ctx context.Context, entries []Record) ([]Verdict, error)

	// Finish ends assignments: accept, fail, retry, release (P3, P4, P5). A
	// refused entry is recorded as a fenced_out event in the same transaction.
	Finish(ctx context.Context, tx onereply.Tx, entries []Ending) ([]Verdict, error)

	// Command carries out what a person asks for: cancel and resume.
	Command(ctx context.Context, tx onereply.Tx, entries []Command) ([]Commanded, error)
}

// Reader answers questions and changes nothing.
type Reader interface {
	// Tasks returns tasks by id, in the order of the ids and without those that
	// are not there, or by filter, newest first.
	Tasks(ctx context.Context, q Query) ([]onereply.Task, error)

	// Timeline returns every event of a task's life, oldest first. Empty: no
	// such task in that scope.
	Timeline(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error)

	// Drafts returns, per position and in their order, where the task stands and
	// the draft chunks after the position.
	Drafts(ctx context.Context, positions []Position) ([]Draft, error)

	// Due reports whether a Claim could find work now for the kinds, and how
	// long until it could if nothing else changes. It reads only.
	Due(ctx context.Context, kinds []string) (Due, error)

	// Stats counts.
	Stats(ctx context.Context) (Stats, error)

	// Watch calls hint whenever something was committed to the store by anyone,
	// coalesced, until ctx ends; then it returns nil. A hint may be lost or come
	// for nothing: polling is the truth.
	Watch(ctx context.Context, hint func()) error
}

// Keeper keeps the tables small.
type Keeper interface {
	// Purge removes what is past its retention, at most limit rows of a sort in
	// one short transaction: keys whose record has expired and whose task has
	// ended, ended tasks past task retention that no key record names any more.
	// It writes nothing, and takes no write lock, when there is nothing to remove.
	Purge(ctx context.Context, p Purge) (Purged, error)
}

// Submission is a submission with everything resolved.
type Submission struct {
	Scope, Action, Key string
	Fingerprint        []byte
	KeyRetention       time.Duration

	// Answer, when not nil, makes this a keyed request without a task; the
	// members below are then zero.
	Answer json.RawMessage

	ID       onereply.TaskID
	Kind     string
	Input    json.RawMessage
	Delay    time.Duration
	Deadline time.Time
	Rules    onereply.Rules
	Attempts int // max
	Calls    int // max
	Elapsed  time.Duration
}

// SubmitVerdict says what became of an entry of Submit.
type SubmitVerdict int

// The verdicts of Submit. KeyReused wrote nothing.
const (
	Created SubmitVerdict = iota + 1
	Existing
	KeyReused
)

// Submitted is the verdict on one submission.
type Submitted struct {
	Verdict SubmitVerdict
	Task    onereply.Task   // with Input and, where completed, Response; zero for KeyReused and for a request without a task
	Answer  json.RawMessage // of a request without a task; the first one's
}

// Claim asks for assignments.
type Claim struct {
	Worker string
	Lease  time.Duration
	Kinds  []string          // only tasks of these kinds
	IDs    []onereply.TaskID // these tasks (a broker delivered them); empty: the next due
	Limit  int               // at most so many; at least 1
	// NewAttempt mints attempt ids.
	NewAttempt func() onereply.AttemptID
}

// Claimed is what a claim handed out.
type Claimed struct {
	Assignments []Assignment
	// Others are the tasks of IDs that were not handed out, as they stand; a task
	// that is not there is missing.
	Others []onereply.Task
}

// Assignment is one assignment and how far its lease reaches.
type Assignment struct {
	onereply.Assignment
	// LeaseFor is how long the lease was good for when it was written.
	LeaseFor time.Duration
	// Took: it is a takeover from an assignment whose lease had expired.
	Took bool
}

// RecordOp says what a Record writes.
type RecordOp int

// The guarded writes of a running attempt.
const (
	// Renew extends the lease to now + Lease, but not past the budget's end.
	Renew RecordOp = iota + 1
	// CountCall counts one call, if the budget allows one: else the verdict is
	// refused with CallsExhausted. It closes the call in Closed first.
	CountCall
	// CloseCall closes the call in Closed.
	CloseCall
	// Checkpoint saves Operation on the open call.
	Checkpoint
	// DraftText appends Text as the chunk Seq of this version. The text holds no
	// NUL, which not every database can keep; the engine takes it out.
	DraftText
	// Progress replaces the state that a takeover reads.
	Progress
	// Late writes nothing but the fenced_out event of an answer that the engine
	// already knows to be too late. It is always refused.
	Late
)

// Record is one guarded write.
type Record struct {
	Guard  onereply.Guard
	Op     RecordOp
	Lease  time.Duration // Renew
	Closed *ClosedCall   // CountCall, CloseCall, Late (tokens wasted)

	Operation string // Checkpoint
	Seq       int64  // DraftText: 1 is the first of a version
	Text      string // DraftText
	State     []byte // Progress
}

// ClosedCall says how a counted call ended.
type ClosedCall struct {
	Number   int // as the count's verdict gave it
	Class    onereply.Class
	Code     string
	Requests int // physical requests seen; 0 where nothing counted them
	Usage    onereply.Usage
}

// Verdict says what became of a guarded write.
type Verdict struct {
	// Refused is nil when the write was done.
	Refused *onereply.Refusal
	// CallsExhausted: a CountCall within a valid assignment was refused by the
	// budget; Refused is nil.
	CallsExhausted bool
	// LeaseFor is how long the lease is good for; of Renew.
	LeaseFor time.Duration
	// Call is the number of the call counted; of CountCall.
	Call int
	// Task is the task after a Finish that was done, with Input and Response; or
	// as it stands, without them, where it was refused and is there.
	Task *onereply.Task
}

// EndingOp says how an assignment ends.
type EndingOp int

// The endings.
const (
	Accept EndingOp = iota + 1
	Fail
	Retry
	Release
)

// Ending ends an assignment.
type Ending struct {
	Guard    onereply.Guard
	Op       EndingOp
	Outcome  onereply.AttemptOutcome
	Response json.RawMessage   // Accept
	Reason   onereply.Reason   // Fail
	Failure  *onereply.Failure // Fail, Retry, Release
	Delay    time.Duration     // Retry
	// Closed closes this call in passing. A call that is still open is closed as
	// unknown by Accept and Fail, and left open by Retry and Release, so that
	// whoever takes over can recover it or must treat it as unknown (P10).
	Closed *ClosedCall
}

// CommandOp says what a person asks for.
type CommandOp int

// The commands.
const (
	Cancel CommandOp = iota + 1
	Resume
)

// Command is one request about one task.
type Command struct {
	Op       CommandOp
	Scope    string // must be the task's; "*" is any
	Task     onereply.TaskID
	Attempts int       // Resume: added to the max
	Calls    int       // Resume: added to the max
	Deadline time.Time // Resume: replaces the deadline; zero keeps it
	// KeyRetention renews the submission's record on Resume.
	KeyRetention time.Duration
}

// CommandVerdict says what became of a command.
type CommandVerdict int

// The verdicts of Command.
const (
	Done           CommandVerdict = iota + 1
	AlreadyDone                   // cancel of a cancelled task
	Missing                       // no such task in that scope
	HasEnded                      // cancel of a completed or failed task
	NotFailed                     // resume of a task that has not failed
	DeadlinePassed                // resume under a deadline that is over
)

// Commanded is the verdict on one command, with the task as it stands after it
// (with Input), unless missing.
type Commanded struct {
	Verdict CommandVerdict
	Task    onereply.Task
}

// Query selects tasks: by IDs, or by the other members, where zero means any.
type Query struct {
	IDs    []onereply.TaskID
	Scope  string // empty: any
	Status onereply.Status
	Kind   string
	Limit  int             // at most so many; ignored with IDs
	After  onereply.TaskID // older than this one, exclusive
	// Whole adds input, response and attempts.
	Whole bool
}

// Position is what a reader has of a task's draft.
type Position struct {
	Task    onereply.TaskID
	Version int64
	Seq     int64
}

// Chunk is one piece of draft text.
type Chunk struct {
	Seq  int64
	Text string
}

// Draft is where a task stands and the chunks its reader lacks: those after
// Position.Seq when the version is the position's, else all of this version.
type Draft struct {
	Task    onereply.TaskID
	Found   bool
	Status  onereply.Status
	Version int64
	Chunks  []Chunk
}

// Due says when a claim could find work.
type Due struct {
	Now  bool
	Wait time.Duration // until the next known moment; 0: none known
}

// Stats counts what is in the store.
type Stats struct {
	ByStatus      map[onereply.Status]int
	OldestWaiting time.Duration // of tasks due and queued; 0: none
	Expired       int           // running tasks whose lease is over
}

// Purge says what to keep and how much to do at once.
type Purge struct {
	TaskRetention time.Duration // after the end
	Limit         int
}

// Purged counts what was removed. More: there was more than the limit allowed.
type Purged struct {
	Keys, Tasks int
	More        bool
}
