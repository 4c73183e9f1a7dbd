// Package engine runs tasks: it submits, claims, works, renews, accepts and
// streams on any store that keeps the contract of package store.
//
// The walk of one task: [Engine.Submit] writes it with its key and the
// application's rows (submit.go). The claim loop takes it (claim.go) and runs
// the kind's Work as an attempt (work.go), which counts calls before they are
// sent (call.go) and appends to the draft (draft.go), while the renewer keeps
// its lease (renew.go). The attempt hands back a candidate; accept.go ends the
// task in one guarded transaction with the kind's Ended hook. Readers follow
// through the hub (events.go). Nothing here decides what a failure means: that
// is onereply.Classify and onereply.Decide.
//
// Concurrent callers share statements and commits through small batches that
// are led by one of the callers themselves (batch.go); nothing ever waits to
// fill a batch.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Options configure an engine. Zero members take the defaults named.
type Options struct {
	Store store.Store     // required
	Kinds []onereply.Kind // required to work; a process that only reads may have none

	Workers int    // attempts at once in this process; default 32; negative: none, this process submits and streams
	Name    string // of this process, in leases and timelines; default host name, pid and a random part

	Lease         time.Duration // default 30 seconds
	Renew         time.Duration // default a third of Lease, and never more
	Poll          time.Duration // how often to look for work that nobody announced; default 1 second
	Sweep         time.Duration // how often to purge; default 5 seconds; negative: never
	Drain         time.Duration // grace for running attempts once Run's context ends; default 20 seconds; negative: none
	KeyRetention  time.Duration // how long a key is remembered, at least; default 168 hours
	TaskRetention time.Duration // how long an ended task is kept; default 720 hours, at least KeyRetention

	Observer onereply.Observer   // default: none
	Logger   *slog.Logger        // default slog.Default()
	IDs      *onereply.IDs       // default onereply.NewIDs()
	Draw     func(n int64) int64 // an even draw from [0, n) for jitter; default math/rand/v2
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if o.Workers == 0 {
		o.Workers = 32
	}
	def(&o.Lease, 30*time.Second)
	def(&o.Renew, o.Lease/3)
	def(&o.Poll, time.Second)
	def(&o.Sweep, 5*time.Second)
	def(&o.Drain, 20*time.Second)
	def(&o.KeyRetention, 168*time.Hour)
	def(&o.TaskRetention, 720*time.Hour)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.IDs == nil {
		o.IDs = onereply.NewIDs()
	}
	if o.Draw == nil {
		o.Draw = rand.Int64N
	}
	if o.Observer == nil {
		o.Observer = onereply.ObserverFunc(func(onereply.Step) {})
	}
	if o.Name == "" {
		o.Name = processName(o.IDs)
	}
	return o
}

func processName(ids *onereply.IDs) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	id := ids.New()
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), id[len(id)-6:])
}

func (o Options) validate() error {
	switch {
	case o.Store == nil:
		return errors.New("a store is needed")
	case o.Lease < 10*time.Millisecond:
		return errors.New("lease must be at least 10ms")
	case o.Renew <= 0 || o.Renew > o.Lease/3:
		return errors.New("renew must be at most a third of the lease")
	case o.Poll <= 0:
		return errors.New("poll must be positive")
	case o.KeyRetention < time.Second:
		return errors.New("key retention must be at least 1s")
	case o.TaskRetention < o.KeyRetention:
		return errors.New("task retention must be at least key retention")
	}
	return nil
}

// Engine submits, works and streams. Its methods are safe for concurrent use.
// It can submit and read as soon as it is made; it works, and streams move,
// while Run runs.
type Engine struct {
	o     Options
	store store.Store
	log   *slog.Logger
	kinds map[string]onereply.Kind
	names []string // of kinds with Work

	submits *batch[submitItem, onereply.Submitted]
	records *batch[recordItem, store.Verdict]
	ends    *batch[endItem, store.Verdict]

	nudged  signal      // work may be due
	fresh   atomic.Bool // work is due: it was submitted here
	changed signal      // something was committed elsewhere
	hub     *hub

	mu      sync.Mutex
	running map[onereply.AttemptID]*attempt
	freed   signal // an attempt ended
	drafted signal // some attempt has draft text waiting
	started atomic.Bool
}

// New checks the options and returns an engine. Its error matches
// onereply.ErrInvalid and says which option makes no sense.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("%w: engine: %w", onereply.ErrInvalid, err)
	}
	e := &Engine{
		o: o, store: o.Store, log: o.Logger,
		kinds:   make(map[string]onereply.Kind),
		running: make(map[onereply.AttemptID]*attempt),
		nudged:  newSignal(), changed: newSignal(), freed: newSignal(), drafted: newSignal(),
	}
	for _, k := range o.Kinds {
		if k.Name == "" {
			return nil, fmt.Errorf("%w: engine: a kind needs a name", onereply.ErrInvalid)
		}
		if _, twice := e.kinds[k.Name]; twice {
			return nil, fmt.Errorf("%w: engine: kind %s is given twice", onereply.ErrInvalid, k.Name)
		}
		k.Policy = k.Policy.WithDefaults()
		if err := k.Policy.Validate(); err != nil {
			return nil, fmt.Errorf("kind %s: %w", k.Name, err)
		}
		e.kinds[k.Name] = k
		if k.Work != nil {
			e.names = append(e.names, k.Name)
		}
	}
	slices.Sort(e.names)
	e.hub = newHub(e.store)
	e.submits = newBatch(256, e.flushSubmits)
	e.submits.apart = func(i submitItem) string { return i.s.Scope + "\x00" + i.s.Action + "\x00" + i.s.Key }
	e.records = newBatch(256, e.flushRecords)
	e.ends = newBatch(256, e.flushEnds)
	return e, nil
}

// Run works until ctx ends, then drains: it claims nothing more, gives running
// attempts Options.Drain to end, and then interrupts and releases them. Attempts
// whose open call can be recovered are handed over at once. It returns nil after
// a clean drain, and an error that names the attempts whose Work ignored its
// context. Call it once.
func (e *Engine) Run(ctx context.Context) error {
	if !e.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: engine: Run was called before", onereply.ErrInvalid)
	}
	// What attempts need until they have ended outlives ctx.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { e.watch(inner) })
	wg.Go(func() { e.hub.run(inner, e.o.Poll, e.log) })
	if e.o.Sweep > 0 {
		wg.Go(func() { e.sweep(ctx) })
	}
	var left error
	if e.o.Workers > 0 && len(e.names) > 0 {
		wg.Go(func() { e.renewLeases(inner) })
		wg.Go(func() { e.writeDrafts(inner) })
		e.claimLoop(ctx, inner)
		left = e.drain(inner)
	} else {
		<-ctx.Done()
	}
	// Readers see the ends of the drain before their streams close.
	if err := e.hub.refresh(inner); err != nil {
		e.log.Warn("reading the last drafts failed; readers come back for them", "error", err)
	}
	stop()
	wg.Wait()
	e.hub.close()
	return left
}

// Nudge tells the engine that a transaction with a SubmitTx in it has
// committed. Without it the poll finds the task within Options.Poll.
func (e *Engine) Nudge() {
	e.fresh.Store(true)
	e.nudged.set()
}

// watch turns the store's hints into wake-ups of the claim loop, the hub and
// the check for cancelled attempts.
func (e *Engine) watch(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { e.checkCancelled(ctx) })
	defer wg.Wait()
	for ctx.Err() == nil {
		err := e.store.Watch(ctx, func() {
			e.nudged.set()
			e.changed.set()
			e.hub.dirty()
		})
		if err != nil && ctx.Err() == nil {
			e.log.Warn("watching the store failed; polling goes on", "error", err)
		}
		pause(ctx, e.o.Poll)
	}
}

// sweep purges what is past its retention, in short transactions.
func (e *Engine) sweep(ctx context.Context) {
	for pause(ctx, e.o.Sweep) {
		for {
			p, err := e.store.Purge(ctx, store.Purge{TaskRetention: e.o.TaskRetention, Limit: 200})
			if err != nil {
				if ctx.Err() == nil {
					e.log.Warn("purge failed; it is tried again", "error", err)
				}
				break
			}
			if !p.More || !pause(ctx, 10*time.Millisecond) {
				break
			}
		}
	}
}

// kind returns a registered kind or an error that matches ErrInvalid.
func (e *Engine) kind(name string) (onereply.Kind, error) {
	k, ok := e.kinds[name]
	if !ok {
		return k, fmt.Errorf("%w: kind %q is not registered with this engine", onereply.ErrInvalid, name)
	}
	return k, nil
}

// byKind groups tasks by kind and calls f for each group, in the order in which
// kinds first appear.
func (e *Engine) byKind(tasks []onereply.Task, f func(onereply.Kind, []onereply.Task) error) error {
	for len(tasks) > 0 {
		k, err := e.kind(tasks[0].Kind)
		if err != nil {
			return err
		}
		var group, rest []onereply.Task
		for _, t := range tasks {
			if t.Kind == k.Name {
				group = append(group, t)
			} else {
				rest = append(rest, t)
			}
		}
		if err := f(k, group); err != nil {
			return err
		}
		tasks = rest
	}
	return nil
}
