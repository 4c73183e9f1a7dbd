package engine

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// LastID is the id of terminal events. A reader that comes back with it has
// everything.
const LastID = "end"

// The types of stream events.
const (
	StreamDelta     = "delta"     // text to append
	StreamReset     = "reset"     // forget the text you have, show this
	StreamCompleted = "completed" // terminal, with the task
	StreamFailed    = "failed"    // terminal, with the task
	StreamCancelled = "cancelled" // terminal, with the task
)

// StreamEvent is one event of a task's stream.
type StreamEvent struct {
	ID      string // "version.sequence" of the last text it includes; LastID for terminal events
	Type    string
	Version int64          // the assignment version the text belongs to
	Text    string         // of delta and reset
	Task    *onereply.Task // of terminal events: the whole task
}

// Subscription is one reader's place in the stream of a task. It is for one
// goroutine. It holds a place and no text of its own: the text is shared by all
// readers of the task in this process.
type Subscription struct {
	e     *Engine
	scope string
	topic *topic

	version int64 // of the text the reader has
	seq     int64 // of the last text it has
	reset   bool  // its place cannot be served: begin with a reset
	over    bool
}

// Subscribe opens a task's stream after the event id last; empty begins with the
// first event of the current draft, and an id that cannot be served begins with
// a reset. It never starts work. The error matches ErrNotFound where there is no
// such task in the scope. Close the subscription.
func (e *Engine) Subscribe(ctx context.Context, scope string, id onereply.TaskID, last string) (*Subscription, error) {
	t, err := e.Task(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	s := &Subscription{e: e, scope: t.Scope, over: last == LastID && t.Status.Ended()}
	if s.topic, err = e.hub.join(ctx, id); err != nil {
		return nil, &onereply.Error{Op: "stream", Guard: onereply.Guard{Task: id}, Err: err}
	}
	s.place(last)
	return s, nil
}

// place finds where the reader stands in the current draft.
func (s *Subscription) place(last string) {
	v := s.topic.view()
	s.version = v.version
	if last == "" {
		// From the beginning; what a second assignment wrote begins with a reset.
		s.reset = v.version > 1 && !v.status.Ended()
		return
	}
	version, seq, ok := parseID(last)
	if ok && version == v.version && v.status.Ended() {
		return // the draft is gone, and what the reader has is the response's beginning
	}
	if !ok || version != v.version || seq > v.lastSeq() {
		s.reset = true
		return
	}
	s.seq = seq
}

func parseID(id string) (version, seq int64, ok bool) {
	before, after, found := strings.Cut(id, ".")
	if !found {
		return 0, 0, false
	}
	version, err := strconv.ParseInt(before, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	seq, err = strconv.ParseInt(after, 10, 64)
	return version, seq, err == nil && version >= 0 && seq >= 0
}

func eventID(version, seq int64) string {
	return strconv.FormatInt(version, 10) + "." + strconv.FormatInt(seq, 10)
}

// Next returns the next event, waiting for it until ctx ends; then it returns
// the context's cause and the place is kept. After the terminal event it returns
// io.EOF, and ErrClosed once the engine has stopped.
func (s *Subscription) Next(ctx context.Context) (StreamEvent, error) {
	for {
		if s.over {
			return StreamEvent{}, io.EOF
		}
		v := s.topic.view()
		if v.status.Ended() {
			if ev, ok, err := s.end(ctx); ok || err != nil {
				return ev, err
			}
		}
		if ev, ok := s.text(v); ok {
			return ev, nil
		}
		if v.closed {
			return StreamEvent{}, onereply.ErrClosed
		}
		select {
		case <-v.moved:
		case <-ctx.Done():
			return StreamEvent{}, context.Cause(ctx)
		}
	}
}

// end is the event of a task that has ended, unless it was resumed in between. It
// is a function of its own because a task is large, and the stack of every reader
// that waits in Next would keep room for it.
//
//go:noinline
func (s *Subscription) end(ctx context.Context) (StreamEvent, bool, error) {
	t, err := s.e.Task(ctx, s.scope, s.topic.id)
	if err != nil || !t.Status.Ended() {
		return StreamEvent{}, false, err
	}
	if s.reset || s.seq > 0 && s.version < t.Version {
		// A takeover came and went while nothing was read, or the reader came back
		// with a place that means nothing here: the text it has is not the response's.
		s.reset, s.version, s.seq = false, t.Version, 0
		return StreamEvent{ID: eventID(t.Version, 0), Type: StreamReset, Version: t.Version}, true, nil
	}
	s.over = true
	return StreamEvent{ID: LastID, Type: string(t.Status), Version: t.Version, Task: &t}, true, nil
}

// text is the event that brings the reader to where the draft is, if it is not
// there yet.
func (s *Subscription) text(v topicView) (StreamEvent, bool) {
	switch {
	case s.reset, v.version != s.version && s.version > 0, v.version > 1 && s.version == 0:
		s.reset, s.version, s.seq = false, v.version, v.lastSeq()
		return StreamEvent{ID: eventID(v.version, s.seq), Type: StreamReset, Version: v.version, Text: v.after(0)}, true
	case v.version != s.version: // the first assignment: nothing was shown yet
		s.version, s.seq = v.version, 0
	}
	if v.lastSeq() <= s.seq {
		return StreamEvent{}, false
	}
	ev := StreamEvent{Type: StreamDelta, Version: v.version, Text: v.after(s.seq)}
	s.seq = v.lastSeq()
	ev.ID = eventID(v.version, s.seq)
	return ev, true
}

// ended waits for the end of the task without reading its text.
func (s *Subscription) ended(ctx context.Context) error {
	for {
		v := s.topic.view()
		if v.status.Ended() {
			return nil
		}
		if v.closed {
			return onereply.ErrClosed
		}
		select {
		case <-v.moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// moved waits until the topic stands where the store does: it is read anew.
func (s *Subscription) moved(ctx context.Context) error {
	return s.e.hub.read(ctx, []*topic{s.topic})
}

// Close leaves the stream. It may be called twice.
func (s *Subscription) Close() {
	if s.topic != nil {
		s.e.hub.leave(s.topic)
		s.topic = nil
	}
	s.over = true
}

// topicView is a topic at one moment. Its chunks are never changed, only
// replaced, so it may be read without a lock.
type topicView struct {
	status  onereply.Status
	version int64
	chunks  []store.Chunk
	moved   <-chan struct{} // closed when the topic has moved on
	closed  bool
}

func (v topicView) lastSeq() int64 {
	if len(v.chunks) == 0 {
		return 0
	}
	return v.chunks[len(v.chunks)-1].Seq
}

// after joins the text after a sequence number.
func (v topicView) after(seq int64) string {
	i := len(v.chunks)
	for i > 0 && v.chunks[i-1].Seq > seq {
		i--
	}
	if i == len(v.chunks)-1 {
		return v.chunks[i].Text
	}
	var b strings.Builder
	for _, c := range v.chunks[i:] {
		b.WriteString(c.Text)
	}
	return b.String()
}
