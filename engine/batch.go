package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// batch lets concurrent callers share one flush. There is no goroutine of its
// own: a caller that finds nobody leading leads, flushes what waits, and hands
// the lead to a caller that came in the meantime. A lone caller flushes at once;
// under load batches grow by themselves, because callers gather while a flush
// is under way.
type batch[T, R any] struct {
	max   int
	flush func([]T) []result[R] // one result per item, in their order
	// apart, when set, keeps entries with equal keys out of one batch: the later
	// one waits for the next.
	apart func(T) string

	mu      sync.Mutex
	waiting []*entry[T, R]
	leading bool
}

// result is what a flush says of one item.
type result[R any] struct {
	value R
	err   error
}

type entry[T, R any] struct {
	item T
	result[R]
	taken  bool          // a leader has it; it can no longer be withdrawn
	chosen bool          // it must lead
	wake   chan struct{} // closed when chosen or done
}

func newBatch[T, R any](limit int, flush func([]T) []result[R]) *batch[T, R] {
	return &batch[T, R]{max: limit, flush: flush}
}

// do adds the item to a batch and waits for its result. A caller whose context
// ends gets its error: an entry that no flush has taken is withdrawn, one that
// is under way goes on without it.
func (b *batch[T, R]) do(ctx context.Context, item T) (R, error) {
	e := &entry[T, R]{item: item, wake: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, e)
	if b.leading {
		b.mu.Unlock()
		select {
		case <-e.wake:
		case <-ctx.Done():
			if b.withdraw(e) {
				var none R
				return none, context.Cause(ctx)
			}
		}
		if !e.leads() {
			return e.value, e.err
		}
	} else {
		b.leading = true
		b.mu.Unlock()
	}
	b.lead(e)
	return e.value, e.err
}

func (e *entry[T, R]) leads() bool { return e.chosen && !e.taken }

// withdraw takes e out of the queue and reports whether the caller may go. An
// entry that was chosen to lead passes the lead on.
func (b *batch[T, R]) withdraw(e *entry[T, R]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.taken {
		return true
	}
	for i, w := range b.waiting {
		if w == e {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			break
		}
	}
	if e.chosen {
		b.passOn()
	}
	return true
}

// passOn makes the first waiting entry the leader. Call with the lock held.
func (b *batch[T, R]) passOn() {
	if len(b.waiting) == 0 {
		b.leading = false
		return
	}
	next := b.waiting[0]
	next.chosen = true
	close(next.wake)
}

// gather lets other goroutines run while that brings more entries.
func (b *batch[T, R]) gather() {
	for had := 0; ; {
		runtime.Gosched()
		b.mu.Lock()
		has := len(b.waiting)
		b.mu.Unlock()
		if has <= had || has >= b.max {
			return
		}
		had = has
	}
}

// lead flushes until its own entry is done; then the next one leads.
func (b *batch[T, R]) lead(own *entry[T, R]) {
	// Callers that were woken by the last flush get a moment to come back, as long as
	// they do: that doubles the batch under load and costs a lone caller nothing to
	// speak of.
	b.gather()
	for done := false; !done; {
		b.mu.Lock()
		group := b.take()
		b.mu.Unlock()
		for i, r := range b.run(group) {
			e := group[i]
			e.result = r
			if e == own {
				done = true
			} else {
				close(e.wake)
			}
		}
	}
	b.mu.Lock()
	b.passOn()
	b.mu.Unlock()
}

// take removes the next group from the queue. Call with the lock held.
func (b *batch[T, R]) take() []*entry[T, R] {
	var group, rest []*entry[T, R]
	seen := make(map[string]bool)
	for _, e := range b.waiting {
		key := ""
		if b.apart != nil {
			key = b.apart(e.item)
		}
		if len(group) >= b.max || b.apart != nil && seen[key] {
			rest = append(rest, e)
			continue
		}
		if b.apart != nil {
			seen[key] = true
		}
		e.taken = true
		group = append(group, e)
	}
	b.waiting = rest
	return group
}

// run flushes a group. A panic of a hook becomes the error of its batch, so that
// the lead is never lost with it.
func (b *batch[T, R]) run(group []*entry[T, R]) (results []result[R]) {
	items := make([]T, len(group))
	for i, e := range group {
		items[i] = e.item
	}
	defer func() {
		if p := recover(); p != nil {
			results = failAll[R](len(items), fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return b.flush(items)
}

func failAll[R any](n int, err error) []result[R] {
	results := make([]result[R], n)
	for i := range results {
		results[i].err = err
	}
	return results
}
