package onereply

import "time"

// EventType names a step of a task's life, in the timeline and for observers.
type EventType string

// The events of a timeline, in the order in which a task usually meets them.
const (
	EventSubmitted    EventType = "submitted"
	EventReplayed     EventType = "replayed"
	EventDispatched   EventType = "dispatched"
	EventDelivered    EventType = "delivered"
	EventRedelivered  EventType = "redelivered"
	EventClaimed      EventType = "claimed"
	EventRenewed      EventType = "renewed"
	EventCalled       EventType = "called"
	EventCheckpointed EventType = "checkpointed"
	EventFencedOut    EventType = "fenced_out"
	EventAccepted     EventType = "accepted"
	EventRetried      EventType = "retried"
	EventReleased     EventType = "released"
	EventFailed       EventType = "failed"
	EventCancelled    EventType = "cancelled"
	EventResumed      EventType = "resumed"
)

// Event is one entry of a task's timeline. Entries that repeat without anything
// between them to tell apart (replays, renewals) are one entry with a count.
type Event struct {
	Type    EventType
	At      time.Time
	Last    time.Time // of a counted entry: the latest; else zero
	Count   int       // 1 unless counted
	Version int64     // 0: not bound to an assignment
	Attempt AttemptID
	Worker  string
	Call    int    // of called and checkpointed: which call
	Why     Why    // of fenced_out
	Code    string // outcome, class, reason or error code
	Detail  string // a short text for people
	Usage   Usage  // tokens of a call, accepted or wasted
}

// Step is one thing the engine did, for metrics and traces.
type Step struct {
	Type     EventType
	Task     TaskID
	Kind     string
	Version  int64
	Attempt  AttemptID
	Worker   string
	Class    Class         // of called: how the call ended
	Why      Why           // of fenced_out
	Reason   Reason        // of failed
	Usage    Usage         // of called and fenced_out
	Duration time.Duration // of called: the call; of accepted, failed: since submission
}

// Observer is the seam for metrics and traces. Its method is called from many
// goroutines, must not block, and must not call the engine.
type Observer interface {
	Observe(Step)
}

// ObserverFunc makes an Observer of a function.
type ObserverFunc func(Step)

// Observe calls f.
func (f ObserverFunc) Observe(s Step) { f(s) }
