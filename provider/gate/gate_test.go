package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/gate"
	"github.com/onereply/onereply/provider/openai"
	"github.com/onereply/onereply/provider/providertest"
)

// scripted answers calls one after another as told; each takes a while.
type scripted struct {
	takes time.Duration

	mu      sync.Mutex
	next    []onereply.Observation // a status of 0 is an answer
	started []time.Duration
	most    int
	running int
	began   time.Time
}

func (*scripted) Name() string { return "scripted" }

func (s *scripted) Start(_ context.Context, call onereply.Call, _ provider.Request, _ func(string) error) (provider.Answer, error) {
	s.mu.Lock()
	s.started = append(s.started, time.Since(s.began))
	s.running++
	s.most = max(s.most, s.running)
	var o onereply.Observation
	if len(s.next) > 0 {
		o, s.next = s.next[0], s.next[1:]
	}
	s.mu.Unlock()
	time.Sleep(s.takes) // virtual
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	if o.Status == 0 {
		call.Used(onereply.Usage{InputTokens: 50, OutputTokens: 50})
		return provider.Answer{Text: "x"}, nil
	}
	o.Asked, o.Connected, o.Requests = true, true, 1
	call.Observe(o)
	return provider.Answer{}, errors.New("status")
}

func refused(status int, after string) onereply.Observation {
	return onereply.Observation{Status: status, RetryAfter: after}
}

// most draws the longest wait.
func most(n int64) int64 { return n - 1 }

// call makes one call through the gate and says how it ended.
func call(t *testing.T, g provider.Admitter) *onereply.CallError {
	t.Helper()
	request := provider.Request{Messages: []provider.Message{{Role: provider.User, Text: "why?"}}}
	leave, err := g.Admit(t.Context(), request)
	if err != nil {
		var e *onereply.CallError
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		return e
	}
	defer leave()
	c := &providertest.Call{}
	_, err = g.Start(t.Context(), c, request, func(string) error { return nil })
	return onereply.Classify(err, c.Seen(), nil, time.Now())
}

// bubble runs a test on virtual time.
func bubble(t *testing.T, o gate.Options, next []onereply.Observation, test func(t *testing.T, s *scripted, g provider.Admitter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{takes: 100 * time.Millisecond, next: next, began: time.Now()}
		o.Draw = most
		g, err := gate.New(s, o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, g)
	})
}

// together makes n calls at once.
func together(t *testing.T, g provider.Admitter, n int) []*onereply.CallError {
	t.Helper()
	outcomes := make([]*onereply.CallError, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { outcomes[i] = call(t, g) })
	}
	all.Wait()
	return outcomes
}

func (s *scripted) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.started)
}

func TestOneRefusalSlowsEverybody(t *testing.T) {
	t.Parallel()
	bubble(t, gate.Options{}, []onereply.Observation{refused(429, "60")}, func(t *testing.T, s *scripted, g provider.Admitter) {
		if e := call(t, g); e == nil || e.Class != onereply.ClassRefusedTemporary {
			t.Fatalf("the first call ended with %v", e)
		}
		for _, e := range together(t, g, 30) {
			if e == nil || e.Class != onereply.ClassRefusedTemporary || e.Code != onereply.CodeRateLimited || e.RetryAfter < 60*time.Second || e.RetryAfter > 76*time.Second {
				t.Fatalf("kept back with %v, %v", e, e.RetryAfter)
			}
		}
		if n := s.calls(); n != 1 {
			t.Errorf("%d calls were made while the provider asked for quiet, want the one", n)
		}
		time.Sleep(time.Minute)
		for _, e := range together(t, g, 30) {
			if e != nil {
				t.Errorf("after the time it named: %v", e)
			}
		}
		if s.started[1] < 60*time.Second || s.started[2] < s.started[1]+s.takes {
			t.Errorf("calls began at %v; want one probe, and the rest after its answer", s.started[:4])
		}
	})
}

func TestAShortWaitIsWaitedAtTheGate(t *testing.T) {
	t.Parallel()
	bubble(t, gate.Options{}, []onereply.Observation{refused(429, "2")}, func(t *testing.T, s *scripted, g provider.Admitter) {
		_ = call(t, g) // refused, as the script has it
		if e := call(t, g); e != nil || s.started[1] < 2*time.Second {
			t.Errorf("got %v; calls began at %v", e, s.started)
		}
	})
}

func TestALongWishIsTriedOnceAWhile(t *testing.T) {
	t.Parallel()
	bubble(t, gate.Options{MaxClosed: 3 * time.Second}, []onereply.Observation{refused(429, "10800")}, func(t *testing.T, s *scripted, g provider.Admitter) {
		if e := call(t, g); e == nil || e.RetryAfter != 3*time.Hour {
			t.Errorf("the wish is passed on as %v", e)
		}
		if e := call(t, g); e != nil || s.calls() != 2 {
			t.Errorf("the probe ended with %v", e)
		}
	})
}

func TestTheCircuitOpensAndProbes(t *testing.T) {
	t.Parallel()
	down := make([]onereply.Observation, 5)
	for i := range down {
		down[i] = refused(503, "")
	}
	o := gate.Options{OpenAfter: 3, Wait: time.Millisecond, Backoff: onereply.Backoff{Base: 10 * time.Second, Max: time.Minute}}
	bubble(t, o, down, func(t *testing.T, s *scripted, g provider.Admitter) {
		for range 10 {
			_ = call(t, g) // refused, as the script has it
		}
		if n := s.calls(); n != 3 {
			t.Fatalf("%d calls before the circuit opened, want 3", n)
		}
		for _, step := range []struct{ wait, calls int }{{10, 4}, {20, 5}, {40, 6}} {
			time.Sleep(time.Duration(step.wait) * time.Second)
			together(t, g, 10)
			if n := s.calls(); n != step.calls {
				t.Errorf("%d calls after %d seconds more, want %d: one probe", n, step.wait, step.calls)
			}
		}
		if e := call(t, g); e != nil {
			t.Errorf("after a probe that was answered: %v", e)
		}
	})
}

func TestFailuresMustComeInARow(t *testing.T) {
	t.Parallel()
	mixed := []onereply.Observation{refused(500, ""), {}, refused(500, ""), {}, refused(500, ""), refused(400, ""), refused(500, "")}
	bubble(t, gate.Options{OpenAfter: 2}, mixed, func(t *testing.T, s *scripted, g provider.Admitter) {
		for range 9 {
			_ = call(t, g) // refused, as the script has it
		}
		if n := s.calls(); n != 9 {
			t.Errorf("%d of 9 calls were made", n)
		}
	})
}

func TestCallsAtOnceAreLimited(t *testing.T) {
	t.Parallel()
	bubble(t, gate.Options{Concurrency: 4}, nil, func(t *testing.T, s *scripted, g provider.Admitter) {
		for _, e := range together(t, g, 40) {
			if e != nil {
				t.Error(e)
			}
		}
		if s.most != 4 || s.calls() != 40 {
			t.Errorf("%d calls, %d at once, want 40 and 4", s.calls(), s.most)
		}
	})
	bubble(t, gate.Options{Concurrency: 1, Wait: time.Second}, nil, func(t *testing.T, s *scripted, g provider.Admitter) {
		s.takes = time.Minute
		kept := 0
		for _, e := range together(t, g, 3) {
			if e != nil && e.Class == onereply.ClassRefusedTemporary {
				kept++
			}
		}
		if kept != 2 || s.calls() != 1 {
			t.Errorf("%d kept back, %d calls, want 2 and 1", kept, s.calls())
		}
	})
}

func TestTokensAMinuteAreLimited(t *testing.T) {
	t.Parallel()
	// A call costs 100 tokens and a minute gives 600.
	bubble(t, gate.Options{TokensPerMinute: 600, Wait: time.Hour, Concurrency: 1}, nil, func(t *testing.T, s *scripted, g provider.Admitter) {
		for _, e := range together(t, g, 24) {
			if e != nil {
				t.Error(e)
			}
		}
		if last := s.started[23]; last < 2*time.Minute || last > 4*time.Minute {
			t.Errorf("24 calls of 100 tokens took %v at 600 a minute", last)
		}
	})
}

func TestWhoWaitsCanLeave(t *testing.T) {
	t.Parallel()
	bubble(t, gate.Options{Concurrency: 1}, nil, func(t *testing.T, _ *scripted, g provider.Admitter) {
		leave, err := g.Admit(t.Context(), provider.Request{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(onereply.ErrDraining)
		if _, err := g.Admit(ctx, provider.Request{}); !errors.Is(err, onereply.ErrDraining) {
			t.Errorf("got %v", err)
		}
		leave()
		leave() // once is all that counts
		if e := call(t, g); e != nil {
			t.Error(e)
		}
	})
}

func TestAGateKeepsWhatItsModelCan(t *testing.T) {
	t.Parallel()
	model, err := openai.NewResponses("m", openai.ResponsesOptions{Background: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]provider.Model{"plain": &scripted{}, "recoverer": model} {
		g, err := gate.New(m, gate.Options{Draw: most})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := g.(provider.Recoverer); ok != (name == "recoverer") {
			t.Errorf("%s: behind the gate it is a recoverer: %v", name, ok)
		}
	}
	for _, o := range []gate.Options{{}, {Draw: most, Concurrency: -1}, {Draw: most, TokensPerMinute: -1}} {
		if _, err := gate.New(model, o); !errors.Is(err, onereply.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
