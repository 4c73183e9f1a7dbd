package onereplytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/sqlite"
)

// errKilled is what the goroutines of a killed process get once the world ends
// and they may go. Nothing they do with it can reach the database.
var errKilled = errors.New("this process was killed")

// watchInterval is how often processes look for each other's commits: seldom, as
// virtual hours pass and each look is real work.
const watchInterval = 500 * time.Millisecond

// Process stands for one process of a program: an engine with a store of its own
// on the world's file. What happens to real processes can be done to it. Its
// methods are safe for concurrent use.
type Process struct {
	// Engine is the process's engine. It runs.
	Engine *engine.Engine
	// Name stands in leases and timelines.
	Name string

	w    *World
	stop context.CancelFunc
	left chan struct{} // closed once Run has returned
	err  error         // of Run

	mu        sync.Mutex
	dead      bool
	frozen    chan struct{}   // closed by Thaw; nil: not frozen
	holds     map[Point]*Hold // nobody is held there yet
	all       []*Hold
	lost      int // so many commits whose answer will be lost
	rollBacks int // so many transactions that will be rolled back
	works     int // runs of Work that have not returned
}

// Start starts a process. The options' store is the process's own; a logger, a
// name and an even jitter are filled in where they are missing. The process is
// stopped when the world ends.
func (w *World) Start(o engine.Options, kinds ...onereply.Kind) *Process {
	w.t.Helper()
	s, err := sqlite.Open(w.t.Context(), filepath.Join(w.dir, "world.db"), sqlite.Options{
		Logger: slog.New(slog.DiscardHandler), WatchInterval: watchInterval,
	})
	if err != nil {
		w.t.Fatalf("opening the world's file for another process: %v", err)
	}
	w.mu.Lock()
	p := &Process{w: w, left: make(chan struct{}), holds: map[Point]*Hold{}, Name: o.Name}
	w.processes = append(w.processes, p)
	if p.Name == "" {
		p.Name = fmt.Sprintf("process-%d", len(w.processes))
	}
	w.mu.Unlock()
	o.Name, o.Store = p.Name, &line{p: p, store: s}
	for _, k := range kinds {
		o.Kinds = append(o.Kinds, p.watched(k))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Draw == nil {
		o.Draw = func(n int64) int64 { return n / 2 }
	}
	if p.Engine, err = engine.New(o); err != nil {
		w.t.Fatalf("starting a process: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	p.stop = cancel
	go func() {
		defer close(p.left)
		p.err = errors.Join(p.Engine.Run(ctx), s.Close())
	}()
	return p
}

// Stop drains the process as SIGTERM does and waits until it has left. The
// error names attempts whose Work ignored its context.
func (p *Process) Stop() error {
	p.stop()
	<-p.left
	return p.err
}

// Kill ends the process as SIGKILL does: from now on nothing it does reaches the
// database, and its leases run out. A transaction that is being committed may
// still commit, as with a real kill.
func (p *Process) Kill() {
	p.mu.Lock()
	p.dead = true
	thaw := p.frozen
	p.frozen = nil
	p.mu.Unlock()
	if thaw != nil {
		close(thaw)
	}
}

// Freeze stops the process as SIGSTOP does: nothing it does reaches the database
// or its Work until [Process.Thaw].
func (p *Process) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil && !p.dead {
		p.frozen = make(chan struct{})
	}
}

// Thaw lets a frozen process go on where it was: it is a zombie now if its
// lease ran out in the meantime.
func (p *Process) Thaw() {
	p.mu.Lock()
	thaw := p.frozen
	p.frozen = nil
	p.mu.Unlock()
	if thaw != nil {
		close(thaw)
	}
}

// LoseAnswers makes the process's next n transactions commit, and their answer
// get lost on the way.
func (p *Process) LoseAnswers(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = n
}

// RollBack makes the process's next n transactions run to their end, hooks and
// all, and then be rolled back.
func (p *Process) RollBack(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rollBacks = n
}

// take counts n down and reports whether it was above zero.
func (p *Process) take(n *int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *n == 0 {
		return false
	}
	*n--
	return true
}

// pass lets a goroutine of a living process through, holds one of a frozen
// process until it thaws, and one of a killed process until the world ends.
func (p *Process) pass() error {
	for {
		p.mu.Lock()
		dead, frozen := p.dead, p.frozen
		p.mu.Unlock()
		switch {
		case dead:
			<-p.w.over
			return errKilled
		case frozen != nil:
			select {
			case <-frozen:
			case <-p.w.over:
				return errKilled
			}
		default:
			return nil
		}
	}
}

// working says how many runs of Work have not returned.
func (p *Process) working() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.works
}

func (p *Process) killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}
