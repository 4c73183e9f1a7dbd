package onereply

import (
	"errors"
	"math"
	"time"
)

// Backoff is exponential with full jitter and a cap: the wait after the n-th
// attempt is drawn evenly from zero to min(Max, Base·2ⁿ⁻¹).
type Backoff struct {
	Base time.Duration // default 1 second
	Max  time.Duration // default 1 minute
}

// WithDefaults returns the backoff with its zero members filled in.
func (b Backoff) WithDefaults() Backoff {
	if b.Base == 0 {
		b.Base = time.Second
	}
	if b.Max == 0 {
		b.Max = time.Minute
	}
	return b
}

func (b Backoff) validate() error {
	if b.Base < 0 || b.Max < b.Base {
		return invalid("backoff base must not be negative nor above its max")
	}
	return nil
}

// Delay draws the wait before the attempt that follows the n-th (1 is the
// first). Draw returns an even number in [0, n).
func (b Backoff) Delay(n int, draw func(n int64) int64) time.Duration {
	ceiling := min(b.Base, b.Max)
	for i := 1; i < n && ceiling < b.Max; i++ {
		if ceiling > b.Max/2 { // doubling would pass the cap, or overflow
			ceiling = b.Max
			break
		}
		ceiling *= 2
	}
	if ceiling <= 0 {
		return 0
	}
	return time.Duration(draw(min(int64(ceiling), math.MaxInt64-1) + 1))
}

// Action is what an attempt's end does to its task.
type Action string

// The actions. Drop writes nothing: the assignment is no longer ours to end.
const (
	Accept  Action = "accept"
	Fail    Action = "fail"
	Retry   Action = "retry"
	Release Action = "release"
	Drop    Action = "drop"
)

// Situation is all that [Decide] looks at.
type Situation struct {
	Err    *CallError // nil: the attempt handed back a candidate
	Cause  error      // why the attempt's context ended; nil while it lives
	Budget Budget     // with what this attempt used
	Rules  Rules
	Policy Policy
	Now    time.Time // the database's, as well as it is known
	Draw   func(n int64) int64

	// Recoverable: a call is open and the next attempt can look its operation up,
	// which is no call.
	Recoverable bool
}

// Decision is what follows the end of an attempt.
type Decision struct {
	Action  Action
	Outcome AttemptOutcome
	Reason  Reason        // of a Fail
	Failure *Failure      // the last cause; of a Fail or Retry
	Delay   time.Duration // of a Retry
}

// Decide says what follows the end of an attempt. It is pure, and the one place
// where retries, budgets and policies meet; a table test enumerates it.
func Decide(s Situation) Decision {
	if s.Err == nil {
		return Decision{Action: Accept, Outcome: OutcomeAccepted}
	}
	failure := s.Err.Failure()
	class := s.Err.Class
	if s.Cause != nil && (class == ClassUnknown || class == ClassInterrupted || class == ClassNotSent) {
		switch {
		case errors.Is(s.Cause, ErrCancelled):
			return Decision{Action: Drop, Outcome: OutcomeCancelled}
		case errors.Is(s.Cause, ErrDraining), errors.Is(s.Cause, ErrLeaseLost):
			// Put back at once, the call left open for whoever takes over. After a
			// lost lease the guard refuses this, as it must.
			return Decision{Action: Release, Outcome: OutcomeInterrupted, Failure: failure}
		}
	}
	ended := OutcomeFailed
	if class == ClassUnknown || class == ClassInterrupted {
		ended = OutcomeUnknown
	}
	fail := func(r Reason) Decision {
		return Decision{Action: Fail, Outcome: ended, Reason: r, Failure: failure}
	}
	// What can still be learned is learned first; neither the policy nor the
	// count of calls has a word in that (P10).
	lookUp := s.Recoverable && (ended == OutcomeUnknown || class == ClassNotSent) &&
		!errors.Is(s.Err, ErrOutcomeUnknown) && !errors.Is(s.Err, ErrCallsExhausted)
	switch {
	case class == ClassRefusedPermanent:
		return fail(ReasonPermanent)
	case ended == OutcomeUnknown && s.Rules.OnUnknown == UnknownStop && !lookUp:
		return fail(ReasonOutcomeUnknown)
	}
	if reason, over := s.Budget.Spent(s.Now); over {
		return fail(reason)
	}
	if !lookUp && (s.Budget.Calls.Used > 0 && s.Budget.Calls.Left() == 0 || errors.Is(s.Err, ErrCallsExhausted)) {
		return fail(ReasonCallsExhausted)
	}
	delay := max(s.Err.RetryAfter, s.Policy.Backoff.Delay(s.Budget.Attempts.Used, s.Draw))
	if end := s.Budget.End(); !end.IsZero() && !s.Now.Add(delay).Before(end) {
		// Waiting would outlast the budget: fail now, with the bound that would end it.
		reason, _ := s.Budget.TimeSpent(end)
		return fail(reason)
	}
	outcome := OutcomeRetried
	if ended == OutcomeUnknown {
		outcome = OutcomeUnknown
	}
	return Decision{Action: Retry, Outcome: outcome, Failure: failure, Delay: delay}
}
