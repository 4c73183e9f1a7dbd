package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// hub is the one fan-out of a process: it holds the draft of every task that
// has readers here, and moves them when something was written. Text written by
// this process is applied as it is; what others wrote is read with one query
// for all topics, after a hint and, because hints may be lost, once a poll. A
// process without readers asks nothing.
type hub struct {
	store store.Store
	woken signal

	mu     sync.Mutex
	topics map[onereply.TaskID]*topic
	reads  int64 // how many reads have begun
	shut   bool
}

// topic is the shared state of one task's readers.
type topic struct {
	id      onereply.TaskID
	readers int // guarded by the hub's mutex

	mu      sync.Mutex
	status  onereply.Status
	version int64
	chunks  []store.Chunk
	asOf    int64 // the latest read that was applied
	moved   chan struct{}
	closed  bool
}

func newHub(s store.Store) *hub {
	return &hub{store: s, woken: newSignal(), topics: make(map[onereply.TaskID]*topic)}
}

// dirty says that tasks may have moved.
func (h *hub) dirty() { h.woken.set() }

// run refreshes topics after hints, and at every poll, until ctx ends. Hints
// that come while a refresh is under way share the next one; a refresh of very
// many topics is followed by a rest in proportion.
func (h *hub) run(ctx context.Context, poll time.Duration, log *slog.Logger) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.woken:
		case <-tick.C:
		}
		began := time.Now()
		rest := 5 * time.Millisecond
		if err := h.refresh(ctx); err != nil && ctx.Err() == nil {
			log.Warn("reading drafts failed; it is tried again", "error", err)
			rest = time.Second
			h.woken.set()
		}
		if !pause(ctx, max(rest, 3*time.Since(began))) {
			return
		}
	}
}

// refreshLimit is how many topics one query covers.
const refreshLimit = 500

func (h *hub) refresh(ctx context.Context) error {
	topics := h.all()
	for len(topics) > 0 {
		n := min(len(topics), refreshLimit)
		if err := h.read(ctx, topics[:n]); err != nil {
			return err
		}
		topics = topics[n:]
	}
	return nil
}

func (h *hub) read(ctx context.Context, topics []*topic) error {
	// Reads of a topic overlap. One that began earlier may hold an older state and
	// come later; it must not undo what a later one has told.
	h.mu.Lock()
	h.reads++
	asOf := h.reads
	h.mu.Unlock()
	positions := make([]store.Position, len(topics))
	for i, t := range topics {
		v := t.view()
		positions[i] = store.Position{Task: t.id, Version: v.version, Seq: v.lastSeq()}
	}
	drafts, err := h.store.Drafts(ctx, positions)
	if err != nil {
		return err
	}
	for i, d := range drafts {
		topics[i].apply(d, asOf)
	}
	return nil
}

// join returns the task's topic, reading where it stands when it is new here.
func (h *hub) join(ctx context.Context, id onereply.TaskID) (*topic, error) {
	h.mu.Lock()
	t, ok := h.topics[id]
	if !ok {
		t = &topic{id: id, moved: make(chan struct{}), closed: h.shut}
		h.topics[id] = t
	}
	t.readers++
	h.mu.Unlock()
	// Read also where the topic exists: another reader may have made it a moment
	// ago and not read it yet, and the place of this one must be found.
	if err := h.read(ctx, []*topic{t}); err != nil {
		h.leave(t)
		return nil, err
	}
	return t, nil
}

func (h *hub) leave(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.readers--; t.readers == 0 {
		delete(h.topics, t.id)
	}
}

func (h *hub) all() []*topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	topics := make([]*topic, 0, len(h.topics))
	for _, t := range h.topics {
		topics = append(topics, t)
	}
	return topics
}

func (h *hub) topic(id onereply.TaskID) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[id]
}

// claimed moves a topic to a new version.
func (h *hub) claimed(id onereply.TaskID, version int64) {
	if t := h.topic(id); t != nil {
		t.claimed(version)
	}
}

// wrote appends a chunk that this process has written.
func (h *hub) wrote(id onereply.TaskID, version int64, c store.Chunk) {
	t := h.topic(id)
	if t == nil {
		return
	}
	if !t.append(version, c) {
		h.dirty() // something is missing before it
	}
}

// close ends every reader once the engine has stopped.
func (h *hub) close() {
	h.mu.Lock()
	h.shut = true
	h.mu.Unlock()
	for _, t := range h.all() {
		t.mu.Lock()
		t.closed = true
		t.move()
		t.mu.Unlock()
	}
}

func (t *topic) view() topicView {
	t.mu.Lock()
	defer t.mu.Unlock()
	return topicView{status: t.status, version: t.version, chunks: t.chunks, moved: t.moved, closed: t.closed}
}

// move wakes the readers. Call with the lock held.
func (t *topic) move() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// append adds a chunk if it follows what is there.
func (t *topic) append(version int64, c store.Chunk) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version != t.version {
		return version < t.version // an older text is of no interest
	}
	last := topicView{chunks: t.chunks}.lastSeq()
	if c.Seq <= last {
		return true
	}
	if c.Seq != last+1 {
		return false
	}
	t.chunks = append(t.chunks, c) // views hold shorter slices of the same array
	t.move()
	return true
}

// claimed moves the topic to a version that this process has claimed.
func (t *topic) claimed(version int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version > t.version {
		t.status, t.version, t.chunks = onereply.StatusRunning, version, nil
		t.move()
	}
}

// apply takes in what a read gave, unless a later one was applied already. It may
// still be older than what this process wrote itself.
func (t *topic) apply(d store.Draft, asOf int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if asOf < t.asOf {
		return
	}
	t.asOf = asOf
	switch {
	case !d.Found:
		// Purged: there is nothing left to follow.
		if !t.closed {
			t.closed = true
			t.move()
		}
		return
	case d.Version < t.version && !d.Status.Ended():
		return
	}
	moved := t.status != d.Status
	if d.Version > t.version {
		t.version, t.chunks, moved = d.Version, nil, true
	}
	t.status = d.Status
	last := topicView{chunks: t.chunks}.lastSeq()
	for _, c := range d.Chunks {
		if c.Seq > last {
			t.chunks = append(t.chunks, c) // views hold shorter slices of the same array
			last, moved = c.Seq, true
		}
	}
	if moved {
		t.move()
	}
}
