package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/onereply/onereply"
)

const (
	// hintPace is the shortest time between two hints of a process. The first one
	// after a pause goes out at once.
	hintPace = 20 * time.Millisecond
	// draftPace is that of hints at nothing but draft text.
	draftPace = 50 * time.Millisecond
	// hintPatience bounds one hint: a server that is away gets none.
	hintPatience = 5 * time.Second
)

// hints tells the watchers of this process of its commits at once, and those of
// other processes by one coalesced NOTIFY after commits. A NOTIFY inside a
// submission would make commits wait for each other: it takes a lock that all
// transactions of the server with a NOTIFY share.
type hints struct {
	mu      sync.Mutex
	wake    map[chan struct{}]bool // watchers here
	pending bool                   // something was committed since the last NOTIFY
	drafts  bool                   // draft text was
	sending bool                   // a goroutine is at it
	closed  bool
	quit    chan struct{} // closed with it
	live    sync.WaitGroup
}

// announce says that something was committed: something that others may act on,
// or nothing but draft text, of which this process's readers know already.
func (s *Store) announce(ctx context.Context, news bool) {
	h := &s.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	if news {
		h.pending = true
	} else {
		h.drafts = true
	}
	if h.sending || h.closed {
		return
	}
	// The goroutine ends when nothing is left to say; Close waits for it.
	h.sending = true
	calm := context.WithoutCancel(ctx)
	h.live.Go(func() { s.sendHints(calm) })
}

// sendHints sends what there is to say, paced, until there is nothing more.
func (s *Store) sendHints(ctx context.Context) {
	for {
		s.hints.mu.Lock()
		pace := draftPace
		switch {
		case s.hints.closed || !s.hints.pending && !s.hints.drafts:
			s.hints.sending = false
			s.hints.mu.Unlock()
			return
		case s.hints.pending:
			pace = hintPace
			for wake := range s.hints.wake {
				set(wake)
			}
		}
		s.hints.pending, s.hints.drafts = false, false
		s.hints.mu.Unlock()
		if err := s.notify(ctx, s.db, s.name); err != nil {
			s.o.Logger.Debug("a hint was not sent; polling finds what it was about", "error", err)
		}
		timer := time.NewTimer(pace)
		select {
		case <-timer.C:
		case <-s.hints.quit:
			timer.Stop()
		}
	}
}

func (s *Store) notify(ctx context.Context, r runner, from string) error {
	ctx, cancel := context.WithTimeout(ctx, hintPatience)
	defer cancel()
	return s.do(ctx, r, "notify", nil, s.channel(), from)
}

// Close stops sending hints and waits for the one under way. The pool is the
// caller's; close it afterwards.
func (s *Store) Close() error {
	s.hints.mu.Lock()
	if !s.hints.closed {
		s.hints.closed = true
		close(s.hints.quit)
	}
	s.hints.mu.Unlock()
	s.hints.live.Wait()
	return nil
}

// channel names what this schema's processes listen to.
func (s *Store) channel() string { return s.o.Schema + "_changed" }

// NotifyTx sends the hint from within the caller's transaction: it goes out with
// its commit, and makes that commit wait for others that do the same. It suits a
// program that submits seldom and cannot call the engine's Nudge.
func (s *Store) NotifyTx(ctx context.Context, tx onereply.Tx) error {
	t, err := of(tx)
	if err != nil {
		return err
	}
	return fault("notify", s.notify(ctx, t, ""))
}
