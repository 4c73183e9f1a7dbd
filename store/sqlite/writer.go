package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/onereply/onereply"
)

// writer lets concurrent transactions share one BEGIN IMMEDIATE … COMMIT, and
// so one sync of the disk. It never waits to batch: a group is what waits.
//
//  1. A caller queues as a member. The first one starts the leader, a goroutine
//     that lives while somebody waits and is awaited by close.
//  2. The leader begins the transaction, which takes the file's lock, and reads
//     the clock.
//  3. It gives each member its turn, within a savepoint. The member's function
//     runs on the member's own goroutine, so that a panic, or the end of a
//     test's goroutine, is the caller's and nobody else's; the leader then keeps
//     or undoes the savepoint.
//  4. It commits and tells them all.
//
// The group runs under the store's context: a caller that hangs up does not
// stop it.
type writer struct {
	s    *Store
	base context.Context // ends with the store
	stop context.CancelFunc

	mu      sync.Mutex
	urgent  []*member // renewals go first
	waiting []*member
	leading bool
	closed  bool
	leaders sync.WaitGroup

	seen       int64     // turns of the file's writers, when this process last looked; the leader's alone
	relaxed    bool      // synchronous=NORMAL on the connection; the leader's alone
	sharedSeen time.Time // when another process was last seen writing; the leader's alone
	busy       chan struct{}
}

// maxGroup bounds a group, so that no commit grows without end and the lock
// is given up in between.
const maxGroup = 128

// lane is how urgent a member is and what its loss would cost.
type lane int

const (
	normal lane = iota
	renewals
	drafts // provisional text: may commit without waiting for the disk
)

type member struct {
	lane lane
	came time.Time
	turn chan *Tx
	ran  chan error // the member's function is over; errPanicked where it did not return
	done chan error // the commit's outcome, or why there was no turn
}

var (
	errPanicked = errors.New("the function did not return")
	errHungUp   = errors.New("the caller hung up before its turn")
)

// do runs f in a shared transaction and returns once it has committed. An error
// of f undoes f alone and is returned as it is.
func (w *writer) do(ctx context.Context, l lane, f func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := &member{lane: l, came: time.Now(), turn: make(chan *Tx, 1), ran: make(chan error, 1), done: make(chan error, 1)}
	if !w.join(m) {
		return &onereply.Error{Op: "begin", Err: onereply.ErrClosed}
	}
	var tx *Tx
	select {
	case tx = <-m.turn:
	case err := <-m.done:
		return err
	case <-ctx.Done():
		if w.leave(m) {
			return ctx.Err()
		}
		select { // chosen already: the turn, or a refusal, is on its way
		case tx = <-m.turn:
		case err := <-m.done:
			return err
		}
	}
	if err := m.run(ctx, tx, f); err != nil {
		return err
	}
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-m.done:
		return err
	default:
		return commitUnknown(ctx.Err())
	}
}

// run takes the member's turn.
func (m *member) run(ctx context.Context, tx *Tx, f func(*Tx) error) (err error) {
	said := errPanicked
	defer func() { m.ran <- said }()
	if ctx.Err() != nil {
		said = errHungUp
		return ctx.Err()
	}
	err = f(tx)
	said = err
	return err
}

func (w *writer) join(m *member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	if m.lane == renewals {
		w.urgent = append(w.urgent, m)
	} else {
		w.waiting = append(w.waiting, m)
	}
	if !w.leading {
		w.leading = true
		w.leaders.Add(1)
		go w.lead()
	}
	return true
}

// leave takes a member out of the queue; false: the leader has it already.
func (w *writer) leave(m *member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, queue := range []*[]*member{&w.urgent, &w.waiting} {
		for i, other := range *queue {
			if other == m {
				*queue = append((*queue)[:i:i], (*queue)[i+1:]...)
				return true
			}
		}
	}
	return false
}

// close lets what waits finish, refuses what comes later, and waits for the leader.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.leaders.Wait()
	w.stop()
}

func (w *writer) lead() {
	defer w.leaders.Done()
	for {
		// Those whom the last commit released are about to come again: one
		// round of the scheduler lets them, at no cost in time.
		for range 3 {
			runtime.Gosched()
		}
		w.mu.Lock()
		if len(w.urgent)+len(w.waiting) == 0 {
			w.leading = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		w.group()
		w.pause()
	}
}

// pause gives a second process its turn at the lock between two groups.
func (w *writer) pause() {
	select {
	case <-w.busy:
		w.sharedSeen = time.Now()
	default:
	}
	if w.sharedSeen.IsZero() || time.Since(w.sharedSeen) > time.Second {
		return
	}
	w.mu.Lock()
	more := len(w.waiting) > 0 && len(w.urgent) == 0
	w.mu.Unlock()
	if !more {
		return
	}
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	select {
	case <-w.base.Done():
	case <-timer.C:
	}
}

// noteBusy is called by connections that found the file locked.
func (w *writer) noteBusy() {
	select {
	case w.busy <- struct{}{}:
	default:
	}
}

// collect takes the next group out of the queues, renewals first. Of a relaxed
// group only drafts.
func (w *writer) collect(relaxed bool) []*member {
	w.mu.Lock()
	defer w.mu.Unlock()
	if relaxed {
		var group, rest []*member
		for _, m := range w.waiting {
			if m.lane == drafts && len(group) < maxGroup {
				group = append(group, m)
			} else {
				rest = append(rest, m)
			}
		}
		w.waiting = rest
		return group
	}
	take := func(queue *[]*member, n int) []*member {
		n = min(n, len(*queue))
		taken := (*queue)[:n:n]
		*queue = append([]*member(nil), (*queue)[n:]...)
		return taken
	}
	group := append([]*member(nil), take(&w.urgent, maxGroup)...)
	return append(group, take(&w.waiting, maxGroup-len(group))...)
}

// onlyDrafts reports whether nothing but drafts waits.
func (w *writer) onlyDrafts() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.waiting {
		if m.lane != drafts {
			return false
		}
	}
	return len(w.urgent) == 0
}

// refuse tells those who wait why there is no transaction. Where the lock could
// not be had in time, whoever came late has not waited long enough yet.
func (w *writer) refuse(err error) {
	var told []*member
	w.mu.Lock()
	for _, queue := range []*[]*member{&w.urgent, &w.waiting} {
		var stay []*member
		for _, m := range *queue {
			if isBusy(err) && time.Since(m.came) < w.s.options.BusyTimeout/2 {
				stay = append(stay, m)
			} else {
				told = append(told, m)
			}
		}
		*queue = stay
	}
	w.mu.Unlock()
	tell(told, err)
}

func tell(members []*member, err error) {
	for _, m := range members {
		m.done <- err
	}
}
