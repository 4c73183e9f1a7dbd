package storetest

import (
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func timelineCases() []Case {
	return []Case{
		{"timeline tells a whole life in order", timelineLife},
		{"timeline tells a failure that was resumed", timelineResumed},
		{"timeline stays small in a storm", timelineStorm},
	}
}

// timelineLife: submitted and replayed; a first attempt that renews, calls,
// checkpoints and is taken over; a second that retries; a third that answers
// after a call; the zombie's late answer.
func timelineLife(e *Env) {
	s := e.submission("k")
	id := e.submit(s).Task.ID
	at := func() string { return fmt.Sprint(e.Now().UnixMilli()) }
	start := at()
	e.Advance(time.Second)
	e.submit(s)
	replayed := at()
	e.Advance(time.Second)
	a := e.claim(id)
	claimed := at()
	e.Advance(time.Second)
	e.record(store.Record{Guard: a.Guard, Op: store.Renew, Lease: lease})
	renewed := at()
	e.Advance(time.Second)
	e.record(store.Record{Guard: a.Guard, Op: store.Renew, Lease: lease})
	renewedLast := at()
	e.record(store.Record{Guard: a.Guard, Op: store.CountCall})
	called := at()
	e.Advance(time.Second)
	e.record(store.Record{Guard: a.Guard, Op: store.Checkpoint, Operation: "resp_1"})
	checkpointed := at()
	e.Advance(lease)
	b := e.claim(id)
	taken := at()
	e.record(store.Record{Guard: b.Guard, Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassUseless, Code: "empty_answer"}})
	e.Advance(time.Second)
	e.done(retry(b.Guard, time.Second))
	retried := at()
	e.Advance(time.Second)
	c, third := e.claim(id), at()
	e.Advance(time.Second)
	e.record(store.Record{Guard: c.Guard, Op: store.CountCall})
	second := at()
	e.Advance(time.Second)
	end := accept(c.Guard, `{}`)
	end.Closed = &store.ClosedCall{Number: 2, Class: onereply.ClassAnswered, Usage: onereply.Usage{InputTokens: 3, OutputTokens: 4}}
	e.done(end)
	accepted := at()
	e.Advance(time.Second)
	zombie := accept(a.Guard, `{}`)
	zombie.Closed = &store.ClosedCall{Number: 1, Class: onereply.ClassAnswered, Usage: onereply.Usage{InputTokens: 8, OutputTokens: 9}}
	e.refused("the zombie's answer", e.finish(zombie), onereply.WhyCompleted)
	fenced := at()

	same(e, "timeline", e.lines(id), []string{
		start + " submitted v0 x1",
		replayed + " replayed v0 x1",
		claimed + " claimed v1 x1",
		renewed + " renewed v1 x2 last=" + renewedLast,
		called + " called v1 x1 call=1 useless empty_answer",
		checkpointed + " checkpointed v1 x1 call=1 resp_1",
		taken + " claimed v2 x1 takeover",
		retried + " retried v2 x1 rate_limited slow down",
		third + " claimed v3 x1",
		second + " called v3 x1 call=2 answered {3 4}",
		accepted + " accepted v3 x1 {3 4}",
		fenced + " fenced_out v1 x1 completed answered {8 9}",
	})
}

// lines writes a timeline with everything that matters of each entry.
func (e *Env) lines(id onereply.TaskID) []string {
	e.Helper()
	var got []string
	for _, ev := range e.timeline(id) {
		line := fmt.Sprintf("%d %s v%d x%d", ev.At.UnixMilli(), ev.Type, ev.Version, ev.Count)
		if !ev.Last.IsZero() {
			line += fmt.Sprintf(" last=%d", ev.Last.UnixMilli())
		}
		if ev.Call != 0 {
			line += fmt.Sprintf(" call=%d", ev.Call)
		}
		for _, word := range []string{string(ev.Why), ev.Code, ev.Detail} {
			if word != "" {
				line += " " + word
			}
		}
		if ev.Usage != (onereply.Usage{}) {
			line += fmt.Sprint(" ", ev.Usage)
		}
		got = append(got, line)
	}
	return got
}

func timelineResumed(e *Env) {
	a := e.running()
	e.Advance(time.Second)
	e.done(fail(a.Guard))
	failed := e.Now()
	e.Advance(time.Second)
	e.command(store.Command{Op: store.Resume, Scope: scope, Task: a.Task.ID, Attempts: 1, Calls: 1})
	e.Advance(time.Second)
	b := e.claim(a.Task.ID)
	e.Advance(time.Second)
	e.done(release(b.Guard))
	e.Advance(time.Second)
	c := e.claim(a.Task.ID)
	e.Advance(time.Second)
	end := fail(c.Guard)
	end.Reason = onereply.ReasonOutcomeUnknown
	e.done(end)
	var got []onereply.EventType
	for _, ev := range e.timeline(a.Task.ID) {
		got = append(got, ev.Type)
	}
	same(e, "timeline", got, []onereply.EventType{
		onereply.EventSubmitted, onereply.EventClaimed, onereply.EventFailed, onereply.EventResumed,
		onereply.EventClaimed, onereply.EventReleased, onereply.EventClaimed, onereply.EventFailed,
	})
	ends := e.events(a.Task.ID, onereply.EventFailed)
	same(e, "first failure", ends[0], onereply.Event{Type: onereply.EventFailed, At: failed, Count: 1, Version: 1,
		Attempt: a.Guard.Attempt, Worker: "worker-1", Code: "permanent", Detail: "stopped"})
	same(e, "second failure", ends[1].Code, "outcome_unknown")
	cancelled := e.created()
	e.command(store.Command{Op: store.Cancel, Scope: scope, Task: cancelled.ID})
	same(e, "cancelled", e.events(cancelled.ID, onereply.EventCancelled), []onereply.Event{
		{Type: onereply.EventCancelled, At: e.Now(), Count: 1},
	})
}

func timelineStorm(e *Env) {
	s := e.submission("k")
	e.submit(s)
	a := e.claim(s.ID)
	e.Advance(lease)
	e.claim(s.ID)
	for range 50 {
		e.submit(s)
		e.records(store.Record{Guard: a.Guard, Op: store.Renew, Lease: lease})
		e.Advance(time.Millisecond)
	}
	same(e, "entries", len(e.timeline(s.ID)), 5) // submitted, two claimed, replayed, fenced_out
	e.fencedOut(a.Guard, onereply.WhyTakenOver, 50)
	replays := e.events(s.ID, onereply.EventReplayed)
	if len(replays) != 1 || replays[0].Count != 50 || !replays[0].Last.After(replays[0].At) {
		e.Errorf("replays: %+v, want one entry that counts 50 and says when the last was", replays)
	}
}
