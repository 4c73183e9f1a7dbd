package sqlite

import (
	"context"
	"slices"

	"github.com/onereply/onereply"
)

// Timeline implements store.Reader. It is derived from the columns of the task,
// its attempts and its calls, and from the events that leave no column.
func (s *Store) Timeline(ctx context.Context, scope string, id onereply.TaskID) (events []onereply.Event, err error) {
	err = s.snapshot(ctx, "timeline", func(q *querier) error {
		t, found, err := q.task(ctx, id)
		if err != nil || !found || (scope != anyScope && scope != t.Scope) {
			return err
		}
		events = append(events, onereply.Event{Type: onereply.EventSubmitted, At: t.CreatedAt, Count: 1})
		for _, part := range []func(context.Context, onereply.TaskID) ([]onereply.Event, error){
			q.attemptEvents, q.callEvents, q.storedEvents,
		} {
			more, err := part(ctx, id)
			if err != nil {
				return err
			}
			events = append(events, more...)
		}
		end, err := q.endEvents(ctx, t, events)
		events = append(events, end...)
		return err
	})
	slices.SortStableFunc(events, inOrder)
	return events, err
}

// inOrder sorts by time; within a millisecond, in the order in which a task
// meets its steps: assignment by assignment, then by the nature of the step.
func inOrder(a, b onereply.Event) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	if a.Version != b.Version && a.Version != 0 && b.Version != 0 {
		return int(a.Version - b.Version)
	}
	if c := rank(a.Type) - rank(b.Type); c != 0 {
		return c
	}
	return a.Call - b.Call
}

func rank(t onereply.EventType) int {
	return slices.Index([]onereply.EventType{
		onereply.EventSubmitted, onereply.EventReplayed, onereply.EventDispatched, onereply.EventDelivered,
		onereply.EventRedelivered, onereply.EventClaimed, onereply.EventRenewed, onereply.EventCalled,
		onereply.EventCheckpointed, onereply.EventRetried, onereply.EventReleased, onereply.EventAccepted,
		onereply.EventFailed, onereply.EventCancelled, onereply.EventFencedOut, onereply.EventResumed,
	}, t)
}

func (q *querier) attemptEvents(ctx context.Context, id onereply.TaskID) (events []onereply.Event, err error) {
	var before onereply.AttemptOutcome
	_, err = q.each(ctx, "attempts_read", func(r row) error {
		claimed := onereply.Event{
			Type: onereply.EventClaimed, At: moment(r.integer(3)), Count: 1,
			Version: r.integer(0), Attempt: onereply.AttemptID(r.text(1)), Worker: r.text(2),
		}
		if before == onereply.OutcomeLeaseExpired || before == onereply.OutcomeFencedOut {
			claimed.Code = "takeover"
		}
		before = onereply.AttemptOutcome(r.text(5))
		events = append(events, claimed)
		if n := r.count(8); n > 0 {
			renewed := claimed
			renewed.Type, renewed.Code, renewed.Count = onereply.EventRenewed, "", n
			renewed.At, renewed.Last = moment(r.integer(9)), moment(r.integer(10))
			events = append(events, renewed)
		}
		return nil
	}, "task", id)
	return events, err
}

func (q *querier) callEvents(ctx context.Context, id onereply.TaskID) (events []onereply.Event, err error) {
	_, err = q.each(ctx, "calls_read", func(r row) error {
		called := onereply.Event{
			Type: onereply.EventCalled, At: moment(r.integer(3)), Count: 1, Call: r.count(0),
			Version: r.integer(1), Attempt: onereply.AttemptID(r.text(2)), Code: r.text(5), Detail: r.text(6),
			Usage: onereply.Usage{InputTokens: r.count(7), OutputTokens: r.count(8)},
		}
		events = append(events, called)
		if operation := r.text(9); operation != "" {
			events = append(events, onereply.Event{
				Type: onereply.EventCheckpointed, At: moment(r.integer(10)), Count: 1, Call: called.Call,
				Version: called.Version, Attempt: called.Attempt, Detail: operation,
			})
		}
		return nil
	}, "task", id)
	return events, err
}

func (q *querier) storedEvents(ctx context.Context, id onereply.TaskID) (events []onereply.Event, err error) {
	_, err = q.each(ctx, "events_read", func(r row) error {
		e := onereply.Event{
			Type: onereply.EventType(r.text(0)), Version: r.integer(1), Attempt: onereply.AttemptID(r.text(2)),
			Why: onereply.Why(r.text(3)), At: moment(r.integer(4)), Count: r.count(6), Worker: r.text(7),
			Code: r.text(8), Detail: r.text(9),
			Usage: onereply.Usage{InputTokens: r.count(10), OutputTokens: r.count(11)},
		}
		if e.Count > 1 {
			e.Last = moment(r.integer(5))
		}
		events = append(events, e)
		return nil
	}, "task", id)
	return events, err
}

// endEvents are the ends that have columns: accepted and failed.
func (q *querier) endEvents(ctx context.Context, t taskRow, before []onereply.Event) (events []onereply.Event, err error) {
	end := onereply.Event{At: t.EndedAt, Count: 1, Version: t.Version, Attempt: t.Attempt, Worker: t.Worker}
	switch t.Status {
	case onereply.StatusFailed:
		end.Type, end.Code = onereply.EventFailed, string(t.Reason)
		if t.Error != nil {
			end.Detail = t.Error.Message
		}
		return []onereply.Event{end}, nil
	case onereply.StatusCompleted:
		_, err = q.each(ctx, "response", func(r row) error {
			end.Type, end.Attempt, end.Version, end.At = onereply.EventAccepted, onereply.AttemptID(r.text(1)), r.integer(2), moment(r.integer(3))
			return nil
		}, "task", t.ID)
		for _, e := range before {
			if e.Type == onereply.EventCalled && e.Attempt == end.Attempt {
				end.Usage = end.Usage.Add(e.Usage)
			}
		}
		return []onereply.Event{end}, err
	}
	return nil, nil
}
