package gate

import (
	"context"
	"sync"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// Start makes the call and learns from how it ends.
func (g *Gate) Start(ctx context.Context, call onereply.Call, r provider.Request, emit func(delta string) error) (provider.Answer, error) {
	seen := &watched{Call: call}
	answer, err := g.Model.Start(ctx, seen, r, emit)
	observed, usage := seen.end()
	g.learn(onereply.Classify(err, observed, context.Cause(ctx), time.Now()), observed, usage, estimate(r))
	return answer, err
}

// learn draws the conclusions from how a call ended.
func (g *Gate) learn(outcome *onereply.CallError, seen onereply.Observation, usage onereply.Usage, estimated float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.wake()
	if total := usage.InputTokens + usage.OutputTokens; total > 0 {
		g.tokens -= float64(total) - estimated // into debt, if need be
	}
	switch {
	case outcome != nil && outcome.Class == onereply.ClassInterrupted:
		// It says nothing of the provider.
	case outcome != nil && outcome.Class == onereply.ClassRefusedTemporary:
		g.shut(outcome)
	case outcome != nil && (outcome.Class == onereply.ClassNotSent || outcome.Class == onereply.ClassUnknown && (seen.Status == 0 || seen.Status >= 500)):
		if g.failures++; g.doubtful || g.failures >= g.o.OpenAfter {
			g.shut(outcome)
		}
	default:
		g.failures = 0
		if !time.Now().Before(g.until) {
			g.doubtful, g.closings = false, 0
		}
	}
}

// shut closes the gate; the lock is held. Calls that were under way when it was
// closed do not close it once more.
func (g *Gate) shut(outcome *onereply.CallError) {
	now := time.Now()
	if !now.Before(g.until) {
		g.closings++
	}
	wait := max(outcome.RetryAfter, g.o.Backoff.Delay(g.closings, g.o.Draw))
	until := now.Add(min(wait, g.o.MaxClosed))
	if until.After(g.until) {
		g.until = until
	}
	g.code, g.doubtful = outcome.Failure().Code, true
}

// watched remembers what a call was told.
type watched struct {
	onereply.Call

	mu    sync.Mutex
	seen  onereply.Observation
	usage onereply.Usage
}

// Observe passes on what was seen.
func (w *watched) Observe(o onereply.Observation) {
	w.mu.Lock()
	w.seen = w.seen.Merge(o)
	w.mu.Unlock()
	w.Call.Observe(o)
}

// Used passes on the tokens.
func (w *watched) Used(u onereply.Usage) {
	w.mu.Lock()
	w.usage = u
	w.mu.Unlock()
	w.Call.Used(u)
}

func (w *watched) end() (onereply.Observation, onereply.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen, w.usage
}
