package onereply

import "time"

// Bound is one visible limit: how much is used of how much.
type Bound struct {
	Used int
	Max  int
}

// Left returns what remains, never less than zero.
func (b Bound) Left() int { return max(0, b.Max-b.Used) }

// Budget is what a task may consume. Attempts, calls, elapsed time and
// deadline each bound the task; no redelivery, takeover, restart or client
// retry gives any of it back (P8).
type Budget struct {
	Attempts    Bound
	Calls       Bound
	ElapsedMax  time.Duration
	ElapsedFrom time.Time // submission, or the last resume
	Deadline    time.Time // zero: none
}

// End returns the moment after which the task may not be worked on: the
// earlier of the deadline and the end of the elapsed budget. It is zero when
// neither bounds the task.
func (b Budget) End() time.Time {
	var end time.Time
	if b.ElapsedMax > 0 {
		end = b.ElapsedFrom.Add(b.ElapsedMax)
	}
	if !b.Deadline.IsZero() && (end.IsZero() || b.Deadline.Before(end)) {
		end = b.Deadline
	}
	return end
}

// TimeSpent says which of the two bounds of time is over at now, the database's
// time. A bound is over at its very instant, as a lease is.
func (b Budget) TimeSpent(now time.Time) (Reason, bool) {
	if !b.Deadline.IsZero() && !now.Before(b.Deadline) {
		return ReasonDeadlineExceeded, true
	}
	if b.ElapsedMax > 0 && !now.Before(b.ElapsedFrom.Add(b.ElapsedMax)) {
		return ReasonElapsedExhausted, true
	}
	return "", false
}

// Spent says why no further attempt may start at now. Calls are judged when
// they are counted, not here: a takeover may still recover an open operation.
func (b Budget) Spent(now time.Time) (Reason, bool) {
	if reason, over := b.TimeSpent(now); over {
		return reason, true
	}
	if b.Attempts.Left() == 0 {
		return ReasonAttemptsExhausted, true
	}
	return "", false
}

// UnknownPolicy decides what follows an outcome that is not known and cannot be
// recovered (P10).
type UnknownPolicy string

// The two policies. Retry may cost twice, within the budget; stop ends the task
// as failed with reason outcome_unknown.
const (
	UnknownRetry UnknownPolicy = "retry"
	UnknownStop  UnknownPolicy = "stop"
)

// Acceptance decides whose valid answer may fill the response slot. A kind has
// one rule and nothing mixes them.
type Acceptance string

// The two acceptance rules. Under CurrentAssignment, the default, only the
// current, unexpired assignment may. Under FirstValid, for immutable inputs,
// any recorded attempt may while the slot is empty and the task has not ended.
const (
	CurrentAssignment Acceptance = "current-assignment"
	FirstValid        Acceptance = "first-valid"
)

// Rules are the parts of a kind's policy that travel with each task, so that
// every worker decides alike whatever its own settings are.
type Rules struct {
	OnUnknown  UnknownPolicy
	Acceptance Acceptance
}

// Policy bounds the tasks of a kind. Zero members take the defaults of
// [Policy.WithDefaults].
type Policy struct {
	MaxAttempts int           // default 5
	MaxCalls    int           // default 3
	MaxElapsed  time.Duration // default 15 minutes, from submission or resume
	OnUnknown   UnknownPolicy // default retry
	Acceptance  Acceptance    // default current-assignment
	CallTimeout time.Duration // default 5 minutes: one call, and how long an attempt may show no sign of life
	Backoff     Backoff       // default 1 second base, 1 minute cap
}

// WithDefaults returns the policy with its zero members filled in.
func (p Policy) WithDefaults() Policy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 5
	}
	if p.MaxCalls == 0 {
		p.MaxCalls = 3
	}
	if p.MaxElapsed == 0 {
		p.MaxElapsed = 15 * time.Minute
	}
	if p.OnUnknown == "" {
		p.OnUnknown = UnknownRetry
	}
	if p.Acceptance == "" {
		p.Acceptance = CurrentAssignment
	}
	if p.CallTimeout == 0 {
		p.CallTimeout = 5 * time.Minute
	}
	p.Backoff = p.Backoff.WithDefaults()
	return p
}

// Validate reports the first member that makes no sense, by name. Call it on a
// policy with defaults.
func (p Policy) Validate() error {
	switch {
	case p.MaxAttempts < 1:
		return invalid("max attempts must be at least 1")
	case p.MaxCalls < 0:
		return invalid("max calls must not be negative")
	case p.MaxElapsed < time.Millisecond:
		return invalid("max elapsed must be at least 1ms")
	case p.OnUnknown != UnknownRetry && p.OnUnknown != UnknownStop:
		return invalid("on unknown outcome must be retry or stop")
	case p.Acceptance != CurrentAssignment && p.Acceptance != FirstValid:
		return invalid("acceptance must be current-assignment or first-valid")
	case p.CallTimeout < 0:
		return invalid("call timeout must not be negative")
	}
	return p.Backoff.validate()
}
