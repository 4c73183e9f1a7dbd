package sqlite

import (
	"sync"
	"time"
)

// clock is the store's one reading of the host's time. SQLite has no clock of
// its own, so the host's is read once the write lock is held and passed to
// every statement of the transaction.
//
// It never runs backwards: a high-water mark is kept in the file, and behind
// the mark time runs on from it by the process's monotonic clock. A step
// forward is followed at once; it may take a lease over early, which the fence
// makes safe. The unit is a millisecond.
type clock struct {
	wall    func() time.Time
	elapsed func() time.Duration // monotonic

	mu     sync.Mutex
	last   int64         // the latest time known
	lastAt time.Duration // elapsed when it was
}

func newClock(wall func() time.Time, elapsed func() time.Duration) *clock {
	if wall == nil {
		wall = time.Now
	}
	if elapsed == nil {
		start := time.Now()
		elapsed = func() time.Duration { return time.Since(start) }
	}
	return &clock{wall: wall, elapsed: elapsed}
}

// read returns the time now, not before mark.
func (c *clock) read(mark int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.elapsed()
	ran := c.last + max(0, (elapsed-c.lastAt).Milliseconds())
	if c.last == 0 {
		ran = 0 // nothing known yet
	}
	now := max(c.wall().UnixMilli(), ran, mark)
	// Behind the mark, fractions of a millisecond are kept by moving lastAt only
	// as far as last moved.
	if now == ran && c.last != 0 {
		c.lastAt += time.Duration(now-c.last) * time.Millisecond
	} else {
		c.lastAt = elapsed
	}
	c.last = now
	return now
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func span(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
