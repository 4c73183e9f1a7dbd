package onereply_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onereply/onereply"
)

// most draws the longest wait, so that expected delays are plain numbers.
func most(n int64) int64 { return n - 1 }

func freshBudget() onereply.Budget {
	return onereply.Budget{
		Attempts:    onereply.Bound{Used: 1, Max: 5},
		Calls:       onereply.Bound{Used: 1, Max: 3},
		ElapsedMax:  15 * time.Minute,
		ElapsedFrom: noon.Add(-time.Minute),
	}
}

// budgets are the states of a budget and what a retry becomes under each.
func budgets() []struct {
	name   string
	budget onereply.Budget
	reason onereply.Reason // empty: a retry stays one
} {
	change := func(f func(*onereply.Budget)) onereply.Budget {
		b := freshBudget()
		f(&b)
		return b
	}
	return []struct {
		name   string
		budget onereply.Budget
		reason onereply.Reason
	}{
		{"fresh", freshBudget(), ""},
		{"no bound of time", change(func(b *onereply.Budget) { b.ElapsedMax = 0 }), ""},
		{"no call used of none", change(func(b *onereply.Budget) { b.Calls = onereply.Bound{} }), ""},
		{"one attempt left", change(func(b *onereply.Budget) { b.Attempts.Used = 4 }), ""},
		{"attempts used up", change(func(b *onereply.Budget) { b.Attempts.Used = 5 }), onereply.ReasonAttemptsExhausted},
		{"calls used up", change(func(b *onereply.Budget) { b.Calls.Used = 3 }), onereply.ReasonCallsExhausted},
		{"elapsed time over", change(func(b *onereply.Budget) { b.ElapsedFrom = noon.Add(-15 * time.Minute) }), onereply.ReasonElapsedExhausted},
		{"deadline passed", change(func(b *onereply.Budget) { b.Deadline = noon }), onereply.ReasonDeadlineExceeded},
		{"deadline before the next attempt", change(func(b *onereply.Budget) { b.Deadline = noon.Add(time.Second) }), onereply.ReasonDeadlineExceeded},
		{"elapsed time over before the next attempt", change(func(b *onereply.Budget) { b.ElapsedFrom = noon.Add(-15*time.Minute + time.Second) }), onereply.ReasonElapsedExhausted},
		{"deadline and attempts over", change(func(b *onereply.Budget) { b.Deadline = noon; b.Attempts.Used = 5 }), onereply.ReasonDeadlineExceeded},
	}
}

// TestDecide enumerates class × cause × policy × budget. The first table says
// what the class and the end of the context come to, the budgets say what is
// left of a retry.
func TestDecide(t *testing.T) {
	t.Parallel()
	causes := []error{nil, onereply.ErrCallTimeout, onereply.ErrCancelled, onereply.ErrDraining, onereply.ErrLeaseLost}
	table := []struct {
		class onereply.Class
		want  [5]string // by cause
	}{
		{onereply.ClassNotSent, [5]string{"retry", "retry", "drop", "release", "release"}},
		{onereply.ClassRefusedTemporary, [5]string{"retry", "retry", "retry", "retry", "retry"}},
		{onereply.ClassRefusedPermanent, [5]string{"fail", "fail", "fail", "fail", "fail"}},
		{onereply.ClassUnknown, [5]string{"policy", "policy", "drop", "release", "release"}},
		{onereply.ClassUseless, [5]string{"retry", "retry", "retry", "retry", "retry"}},
		{onereply.ClassInterrupted, [5]string{"policy", "policy", "drop", "release", "release"}},
	}
	for _, row := range table {
		for i, cause := range causes {
			for _, policy := range []onereply.UnknownPolicy{onereply.UnknownRetry, onereply.UnknownStop} {
				for _, b := range budgets() {
					name := fmt.Sprintf("%s, %v, on unknown %s, %s", row.class, cause, policy, b.name)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						if cause != nil {
							cause = fmt.Errorf("attempt: %w", cause)
						}
						err := &onereply.CallError{Class: row.class, Code: "c", Message: "m"}
						got := onereply.Decide(onereply.Situation{
							Err: err, Cause: cause, Budget: b.budget,
							Rules: onereply.Rules{OnUnknown: policy}, Policy: onereply.Policy{}.WithDefaults(),
							Now: noon, Draw: most,
						})
						if diff := cmp.Diff(decision(row.want[i], policy, b.reason, b.budget.Attempts.Used), got); diff != "" {
							t.Errorf("-want +got\n%s", diff)
						}
					})
				}
			}
		}
	}
}

// decision spells out one word of TestDecide's table.
func decision(word string, policy onereply.UnknownPolicy, spent onereply.Reason, attempts int) onereply.Decision {
	failure := &onereply.Failure{Code: "c", Message: "m"}
	retried, failed := onereply.OutcomeRetried, onereply.OutcomeFailed
	switch word {
	case "drop":
		return onereply.Decision{Action: onereply.Drop, Outcome: onereply.OutcomeCancelled}
	case "release":
		return onereply.Decision{Action: onereply.Release, Outcome: onereply.OutcomeInterrupted, Failure: failure}
	case "fail":
		return onereply.Decision{Action: onereply.Fail, Outcome: failed, Reason: onereply.ReasonPermanent, Failure: failure}
	case "policy":
		retried, failed = onereply.OutcomeUnknown, onereply.OutcomeUnknown
		if policy == onereply.UnknownStop {
			return onereply.Decision{Action: onereply.Fail, Outcome: failed, Reason: onereply.ReasonOutcomeUnknown, Failure: failure}
		}
	}
	if spent != "" {
		return onereply.Decision{Action: onereply.Fail, Outcome: failed, Reason: spent, Failure: failure}
	}
	longest := map[int]time.Duration{1: time.Second, 4: 8 * time.Second}[attempts]
	return onereply.Decision{Action: onereply.Retry, Outcome: retried, Failure: failure, Delay: longest}
}

func TestDecideAcceptsACandidate(t *testing.T) {
	t.Parallel()
	got := onereply.Decide(onereply.Situation{Cause: onereply.ErrDraining, Now: noon})
	if got.Action != onereply.Accept || got.Outcome != onereply.OutcomeAccepted {
		t.Errorf("got %+v", got)
	}
}

func TestAWishToWaitIsKeptOrEndsTheTask(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		after    time.Duration
		deadline time.Duration // from now; 0: none
		action   onereply.Action
		delay    time.Duration
		reason   onereply.Reason
	}{
		{name: "shorter than the backoff", after: time.Millisecond, action: onereply.Retry, delay: time.Second},
		{name: "longer than the backoff", after: time.Minute, action: onereply.Retry, delay: time.Minute},
		{name: "to the last moment of the budget", after: 14*time.Minute - 1, action: onereply.Retry, delay: 14*time.Minute - 1},
		{name: "to the end of the budget", after: 14 * time.Minute, action: onereply.Fail, reason: onereply.ReasonElapsedExhausted},
		{name: "hours", after: 3 * time.Hour, action: onereply.Fail, reason: onereply.ReasonElapsedExhausted},
		{name: "as long as a header may say", after: 366 * 24 * time.Hour, action: onereply.Fail, reason: onereply.ReasonElapsedExhausted},
		{name: "beyond the deadline", after: 2 * time.Second, deadline: time.Second, action: onereply.Fail, reason: onereply.ReasonDeadlineExceeded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := freshBudget()
			if test.deadline > 0 {
				b.Deadline = noon.Add(test.deadline)
			}
			got := onereply.Decide(onereply.Situation{
				Err:    &onereply.CallError{Class: onereply.ClassRefusedTemporary, RetryAfter: test.after},
				Budget: b, Policy: onereply.Policy{}.WithDefaults(), Now: noon, Draw: most,
			})
			if got.Action != test.action || got.Delay != test.delay || got.Reason != test.reason {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Whatever happened and whatever is left: a retry always stays inside all four
// bounds, and an end always says why.
func TestDecideNeverLeavesTheBudget(t *testing.T) {
	t.Parallel()
	classes := []onereply.Class{
		onereply.ClassNotSent, onereply.ClassRefusedTemporary, onereply.ClassRefusedPermanent,
		onereply.ClassUnknown, onereply.ClassUseless, onereply.ClassInterrupted,
	}
	causes := []error{nil, onereply.ErrCallTimeout, onereply.ErrCancelled, onereply.ErrDraining, onereply.ErrLeaseLost, errors.New("other")}
	span := rapid.Int64Range(int64(-time.Hour), int64(time.Hour))
	rapid.Check(t, func(t *rapid.T) {
		b := onereply.Budget{
			Attempts:    onereply.Bound{Used: rapid.IntRange(1, 6).Draw(t, "attempts"), Max: rapid.IntRange(1, 5).Draw(t, "max attempts")},
			Calls:       onereply.Bound{Used: rapid.IntRange(0, 4).Draw(t, "calls"), Max: rapid.IntRange(0, 3).Draw(t, "max calls")},
			ElapsedMax:  time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "elapsed")),
			ElapsedFrom: noon.Add(time.Duration(span.Draw(t, "from"))),
		}
		if rapid.Bool().Draw(t, "has deadline") {
			b.Deadline = noon.Add(time.Duration(span.Draw(t, "deadline")))
		}
		s := onereply.Situation{
			Err: &onereply.CallError{
				Class:      rapid.SampledFrom(classes).Draw(t, "class"),
				RetryAfter: time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "retry after")),
			},
			Cause:  rapid.SampledFrom(causes).Draw(t, "cause"),
			Budget: b,
			Rules:  onereply.Rules{OnUnknown: rapid.SampledFrom([]onereply.UnknownPolicy{onereply.UnknownRetry, onereply.UnknownStop}).Draw(t, "policy")},
			Policy: onereply.Policy{}.WithDefaults(), Now: noon,
			Draw: func(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(t, "draw") },
		}
		d := onereply.Decide(s)
		unknown := s.Err.Class == onereply.ClassUnknown || s.Err.Class == onereply.ClassInterrupted
		switch d.Action {
		case onereply.Accept:
			t.Fatal("an error was accepted")
		case onereply.Fail:
			if d.Reason == "" || d.Failure == nil {
				t.Fatalf("an end without a reason: %+v", d)
			}
		case onereply.Retry:
			next := noon.Add(d.Delay)
			switch {
			case d.Delay < s.Err.RetryAfter:
				t.Fatalf("waits %s where the provider asked for %s", d.Delay, s.Err.RetryAfter)
			case b.Attempts.Left() == 0, b.Calls.Used > 0 && b.Calls.Left() == 0:
				t.Fatalf("a retry without budget: %+v", b)
			case !b.End().IsZero() && !next.Before(b.End()):
				t.Fatalf("a retry at %s after the end %s", next, b.End())
			case s.Err.Class == onereply.ClassRefusedPermanent:
				t.Fatal("a permanent refusal was retried")
			case unknown && s.Rules.OnUnknown == onereply.UnknownStop:
				t.Fatal("an unknown outcome was retried against the policy")
			case unknown != (d.Outcome == onereply.OutcomeUnknown):
				t.Fatalf("class %s was recorded as %s", s.Err.Class, d.Outcome)
			}
		case onereply.Drop, onereply.Release:
			if s.Cause == nil {
				t.Fatalf("%s although nothing ended the attempt", d.Action)
			}
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := onereply.Backoff{}.WithDefaults()
	for n, want := range []time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		if want == 0 {
			continue
		}
		if got := b.Delay(n, most); got != want {
			t.Errorf("after attempt %d at most %s, want %s", n, got, want)
		}
		if got := b.Delay(n, func(int64) int64 { return 0 }); got != 0 {
			t.Errorf("after attempt %d at least %s, want 0", n, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := onereply.Backoff{
			Base: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "base")),
			Max:  time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
		}
		n := rapid.IntRange(0, 200).Draw(t, "n")
		shorter, got := b.Delay(n, most), b.Delay(n+1, most)
		if shorter < min(b.Base, b.Max)-1 || got > b.Max || got < shorter {
			t.Fatalf("%+v: after %d at most %s, after %d at most %s", b, n, shorter, n+1, got)
		}
	})
}

// A lookup is no call: neither the count of calls nor the policy to stop comes
// before it, while attempts and time do.
func TestWhatCanBeLookedUpIsLookedUpFirst(t *testing.T) {
	t.Parallel()
	change := func(f func(*onereply.Budget)) onereply.Budget {
		b := freshBudget()
		f(&b)
		return b
	}
	noCalls := change(func(b *onereply.Budget) { b.Calls.Used = 3 })
	unknown := &onereply.CallError{Class: onereply.ClassUnknown, Code: "c"}
	refused := &onereply.CallError{Class: onereply.ClassUnknown, Code: "c", Err: onereply.ErrOutcomeUnknown}
	for _, test := range []struct {
		name   string
		err    *onereply.CallError
		budget onereply.Budget
		policy onereply.UnknownPolicy
		reason onereply.Reason // empty: another attempt
	}{
		{"no call is left", unknown, noCalls, onereply.UnknownRetry, ""},
		{"the policy is to stop", unknown, freshBudget(), onereply.UnknownStop, ""},
		{"the lookup did not leave", &onereply.CallError{Class: onereply.ClassNotSent}, noCalls, onereply.UnknownStop, ""},
		{"no attempt is left", unknown, change(func(b *onereply.Budget) { b.Attempts.Used = 5 }), onereply.UnknownRetry, onereply.ReasonAttemptsExhausted},
		{"the time is over", unknown, change(func(b *onereply.Budget) { b.Deadline = noon }), onereply.UnknownRetry, onereply.ReasonDeadlineExceeded},
		{"work would rather call than look", refused, freshBudget(), onereply.UnknownStop, onereply.ReasonOutcomeUnknown},
		{"work would rather call, and none is left", &onereply.CallError{Class: onereply.ClassNotSent, Err: onereply.ErrCallsExhausted}, noCalls, onereply.UnknownRetry, onereply.ReasonCallsExhausted},
		{"it was refused for good", &onereply.CallError{Class: onereply.ClassRefusedPermanent}, freshBudget(), onereply.UnknownRetry, onereply.ReasonPermanent},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := onereply.Decide(onereply.Situation{
				Err: test.err, Budget: test.budget, Rules: onereply.Rules{OnUnknown: test.policy},
				Policy: onereply.Policy{}.WithDefaults(), Now: noon, Draw: most, Recoverable: true,
			})
			if want := test.reason == ""; (got.Action == onereply.Retry) != want || got.Reason != test.reason {
				t.Errorf("got %s %q", got.Action, got.Reason)
			}
		})
	}
}
