package onereply_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
)

func TestBoundLeft(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ used, limit, want int }{{0, 3, 3}, {2, 3, 1}, {3, 3, 0}, {4, 3, 0}, {0, 0, 0}} {
		if got := (onereply.Bound{Used: test.used, Max: test.limit}).Left(); got != test.want {
			t.Errorf("%d of %d: %d left, want %d", test.used, test.limit, got, test.want)
		}
	}
}

func TestTheEndOfABudget(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		elapsed  time.Duration
		deadline time.Time
		want     time.Time
	}{
		{"nothing bounds the time", 0, time.Time{}, time.Time{}},
		{"elapsed time alone", time.Minute, time.Time{}, noon.Add(time.Minute)},
		{"a deadline alone", 0, noon.Add(time.Hour), noon.Add(time.Hour)},
		{"the deadline is earlier", time.Minute, noon.Add(time.Second), noon.Add(time.Second)},
		{"the deadline is later", time.Minute, noon.Add(time.Hour), noon.Add(time.Minute)},
		{"the deadline lies before the start", time.Minute, noon.Add(-time.Hour), noon.Add(-time.Hour)},
	}
	for _, test := range tests {
		b := onereply.Budget{ElapsedMax: test.elapsed, ElapsedFrom: noon, Deadline: test.deadline}
		if got := b.End(); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestWhenABudgetIsSpent(t *testing.T) {
	t.Parallel()
	const tick = time.Millisecond
	full := onereply.Bound{Used: 5, Max: 5}
	open := onereply.Bound{Used: 4, Max: 5}
	tests := []struct {
		name   string
		budget onereply.Budget
		now    time.Time
		want   onereply.Reason // empty: not spent
		time   onereply.Reason // as TimeSpent sees it
	}{
		{"attempts left, no bound of time", onereply.Budget{Attempts: open}, noon, "", ""},
		{"attempts used up", onereply.Budget{Attempts: full}, noon, onereply.ReasonAttemptsExhausted, ""},
		{"calls used up", onereply.Budget{Attempts: open, Calls: full}, noon, "", ""},
		{"just before the elapsed end", onereply.Budget{Attempts: open, ElapsedMax: time.Minute, ElapsedFrom: noon}, noon.Add(time.Minute - tick), "", ""},
		{"at the elapsed end", onereply.Budget{Attempts: open, ElapsedMax: time.Minute, ElapsedFrom: noon}, noon.Add(time.Minute), onereply.ReasonElapsedExhausted, onereply.ReasonElapsedExhausted},
		{"just before the deadline", onereply.Budget{Attempts: open, Deadline: noon}, noon.Add(-tick), "", ""},
		{"at the deadline", onereply.Budget{Attempts: open, Deadline: noon}, noon, onereply.ReasonDeadlineExceeded, onereply.ReasonDeadlineExceeded},
		{"both bounds of time are over", onereply.Budget{Attempts: full, ElapsedMax: time.Minute, ElapsedFrom: noon, Deadline: noon}, noon.Add(time.Hour), onereply.ReasonDeadlineExceeded, onereply.ReasonDeadlineExceeded},
		{"time and attempts are over", onereply.Budget{Attempts: full, ElapsedMax: time.Minute, ElapsedFrom: noon}, noon.Add(time.Hour), onereply.ReasonElapsedExhausted, onereply.ReasonElapsedExhausted},
	}
	for _, test := range tests {
		if got, over := test.budget.Spent(test.now); got != test.want || over != (test.want != "") {
			t.Errorf("%s: Spent gave %q, %v", test.name, got, over)
		}
		if got, over := test.budget.TimeSpent(test.now); got != test.time || over != (test.time != "") {
			t.Errorf("%s: TimeSpent gave %q, %v", test.name, got, over)
		}
	}
}

func TestPolicyDefaults(t *testing.T) {
	t.Parallel()
	want := onereply.Policy{
		MaxAttempts: 5, MaxCalls: 3, MaxElapsed: 15 * time.Minute, OnUnknown: onereply.UnknownRetry,
		Acceptance: onereply.CurrentAssignment, CallTimeout: 5 * time.Minute,
		Backoff: onereply.Backoff{Base: time.Second, Max: time.Minute},
	}
	if diff := cmp.Diff(want, onereply.Policy{}.WithDefaults()); diff != "" {
		t.Error(diff)
	}
	chosen := onereply.Policy{
		MaxAttempts: 1, MaxCalls: 2, MaxElapsed: time.Second, OnUnknown: onereply.UnknownStop,
		Acceptance: onereply.FirstValid, CallTimeout: time.Hour,
		Backoff: onereply.Backoff{Base: time.Minute, Max: time.Hour},
	}
	if diff := cmp.Diff(chosen, chosen.WithDefaults()); diff != "" {
		t.Errorf("a default replaced a choice:\n%s", diff)
	}
}

func TestPoliciesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*onereply.Policy){
		"negative attempts":       func(p *onereply.Policy) { p.MaxAttempts = -1 },
		"negative calls":          func(p *onereply.Policy) { p.MaxCalls = -1 },
		"negative elapsed":        func(p *onereply.Policy) { p.MaxElapsed = -time.Second },
		"elapsed below the unit":  func(p *onereply.Policy) { p.MaxElapsed = time.Microsecond },
		"a policy nobody knows":   func(p *onereply.Policy) { p.OnUnknown = "hope" },
		"an acceptance not known": func(p *onereply.Policy) { p.Acceptance = "best" },
		"negative call timeout":   func(p *onereply.Policy) { p.CallTimeout = -1 },
		"negative backoff":        func(p *onereply.Policy) { p.Backoff.Base = -1 },
		"base above the cap":      func(p *onereply.Policy) { p.Backoff = onereply.Backoff{Base: time.Hour, Max: time.Second} },
	}
	for name, change := range tests {
		p := onereply.Policy{}.WithDefaults()
		if err := p.Validate(); err != nil {
			t.Fatalf("the defaults: %v", err)
		}
		change(&p)
		if err := p.Validate(); !errors.Is(err, onereply.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
