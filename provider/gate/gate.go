// Package gate puts one gate before all calls of a process to one model, so that
// a provider that asks to slow down has to say so once and not to every worker:
// after a 429 nobody calls before the time it named, or a backoff; after a run of
// failures of the server or of the line the circuit opens, and one probe after
// another finds out whether it may close. Calls at once and tokens a minute can be
// limited too.
//
// The gate stands before the count of a call ([provider.Admitter]), so waiting at
// it costs no call. Start reading at [Gate.Admit]; learn.go draws the conclusions
// from how calls end.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// Options limit the calls to a model. Zero members take the defaults named.
type Options struct {
	Concurrency     int // calls at once; default no limit
	TokensPerMinute int // of requests, estimated, and answers; default no limit

	// OpenAfter is how many calls in a row must fail at the server or the line
	// before the circuit opens. Default 5.
	OpenAfter int
	// Backoff is how long the gate stays closed where the provider named no time.
	Backoff onereply.Backoff
	// MaxClosed bounds how long the gate stays closed without a probe, whatever
	// time a provider names. Default 1 minute.
	MaxClosed time.Duration
	// Wait is how long a call waits at the gate before it is sent back. Default
	// 5 seconds.
	Wait time.Duration
	// Draw returns an even number in [0, n), for the jitter.
	Draw func(n int64) int64
}

// Gate is a model behind a gate. It is safe for concurrent use.
type Gate struct {
	provider.Model

	o Options

	mu       sync.Mutex
	changed  chan struct{} // closed at every change that may let somebody in
	running  int
	until    time.Time // closed until then
	code     string    // why it was closed
	doubtful bool      // it was closed, and no call has shown since that it may be open
	probing  bool      // while doubtful: the one call is under way
	closings int       // in a row
	failures int       // of the server or the line, in a row
	tokens   float64   // left in the bucket
	filled   time.Time // when the bucket was
}

// recoverer is a gate before a model whose calls can be recovered. Lookups are no
// calls and pass by the gate.
type recoverer struct {
	*Gate

	provider.Recoverer
}

// Start starts through the gate.
func (r recoverer) Start(ctx context.Context, call onereply.Call, q provider.Request, emit func(delta string) error) (provider.Answer, error) {
	return r.Gate.Start(ctx, call, q, emit)
}

// Name is the model's.
func (r recoverer) Name() string { return r.Gate.Name() }

// New puts a gate before the model. What it returns is a provider.Recoverer
// where the model is one.
func New(model provider.Model, o Options) (provider.Admitter, error) {
	switch {
	case o.Concurrency < 0 || o.TokensPerMinute < 0 || o.OpenAfter < 0 || o.MaxClosed < 0 || o.Wait < 0:
		return nil, fmt.Errorf("%w: the limits of a gate must not be negative", onereply.ErrInvalid)
	case o.Draw == nil:
		return nil, fmt.Errorf("%w: a gate needs a source of jitter", onereply.ErrInvalid)
	}
	o.OpenAfter = cmp.Or(o.OpenAfter, 5)
	o.MaxClosed = cmp.Or(o.MaxClosed, time.Minute)
	o.Wait = cmp.Or(o.Wait, 5*time.Second)
	o.Backoff = o.Backoff.WithDefaults()
	g := &Gate{Model: model, o: o, changed: make(chan struct{}), tokens: float64(o.TokensPerMinute), filled: time.Now()}
	if r, ok := model.(provider.Recoverer); ok {
		return recoverer{g, r}, nil
	}
	return g, nil
}

// Admit waits for leave to make one call.
func (g *Gate) Admit(ctx context.Context, r provider.Request) (leave func(), err error) {
	end := time.Now().Add(g.o.Wait)
	need := estimate(r)
	for {
		leave, wait, code, changed := g.try(need)
		if leave != nil {
			return leave, nil
		}
		left := time.Until(end)
		if left <= 0 || wait > left {
			// Those who come back do not come all at once.
			wait = max(wait, g.o.Wait)
			wait += time.Duration(g.o.Draw(int64(wait)/4 + 1))
			return nil, onereply.RefusedTemporary(code, wait, errors.New("kept back at the gate: nothing was sent"))
		}
		if wait == 0 {
			wait = left
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// try lets a call in, or says how long to wait and why; zero: until something
// changes.
func (g *Gate) try(need float64) (leave func(), wait time.Duration, code string, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	switch {
	case now.Before(g.until):
		return nil, g.until.Sub(now), g.code, g.changed
	case g.doubtful && g.probing:
		return nil, 0, g.code, g.changed
	case g.o.Concurrency > 0 && g.running >= g.o.Concurrency:
		return nil, 0, onereply.CodeRateLimited, g.changed
	}
	if wait := g.take(need, now); wait > 0 {
		return nil, wait, onereply.CodeRateLimited, g.changed
	}
	g.running++
	probe := g.doubtful
	g.probing = probe
	var once sync.Once
	return func() { once.Do(func() { g.leave(probe) }) }, 0, "", nil
}

func (g *Gate) leave(probe bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if probe {
		g.probing = false
	}
	g.wake()
}

// wake lets those who wait look again; the lock is held.
func (g *Gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// take takes tokens from the bucket, which a minute fills, or says how long it
// takes until they are there. What is more than the bucket holds goes when it is
// full.
func (g *Gate) take(need float64, now time.Time) (wait time.Duration) {
	size := float64(g.o.TokensPerMinute)
	if size == 0 {
		return 0
	}
	g.tokens = min(size, g.tokens+now.Sub(g.filled).Minutes()*size)
	g.filled = now
	if missing := min(need, size) - g.tokens; missing > 0 {
		return max(time.Millisecond, time.Duration(missing/size*float64(time.Minute)))
	}
	g.tokens -= need
	return 0
}

// estimate is how many tokens a request has, about: four bytes are one.
func estimate(r provider.Request) float64 {
	bytes := 0
	for _, m := range r.Messages {
		bytes += len(m.Text)
	}
	return float64(bytes)/4 + 1
}
