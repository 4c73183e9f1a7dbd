package postgres

import (
	"context"
	"database/sql"
	"slices"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Timeline implements store.Reader. It is derived from the columns of the task,
// its attempts and its calls, and from the events that leave no column.
func (s *Store) Timeline(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error) {
	tasks, err := s.Tasks(ctx, store.Query{IDs: []onereply.TaskID{id}})
	if err != nil || len(tasks) == 0 || scope != anyScope && scope != tasks[0].Scope {
		return nil, err
	}
	t := tasks[0]
	attempts, err := s.attemptRows(ctx, s.db, []string{string(id)})
	if err != nil {
		return nil, fault("timeline", err)
	}
	calls, err := s.callRows(ctx, s.db, []string{string(id)})
	if err != nil {
		return nil, fault("timeline", err)
	}
	events := []onereply.Event{{Type: onereply.EventSubmitted, At: t.CreatedAt, Count: 1}}
	events = append(events, attemptEvents(attempts[id])...)
	events = append(events, callEvents(calls[id])...)
	stored, err := s.storedEvents(ctx, id)
	if err != nil {
		return nil, fault("timeline", err)
	}
	events = append(events, stored...)
	end, err := s.endEvents(ctx, t, calls[id])
	if err != nil {
		return nil, fault("timeline", err)
	}
	events = append(events, end...)
	slices.SortStableFunc(events, byTime)
	return events, nil
}

// byTime sorts by time; at the same moment, in the order in which a task meets
// its steps: assignment by assignment, then by the nature of the step.
func byTime(a, b onereply.Event) int {
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

func attemptEvents(rows []attemptRow) (events []onereply.Event) {
	var before onereply.AttemptOutcome
	for _, a := range rows {
		claimed := onereply.Event{
			Type: onereply.EventClaimed, At: a.record.StartedAt, Count: 1, Version: a.record.Version,
			Attempt: a.record.ID, Worker: a.record.Worker,
		}
		if before == onereply.OutcomeLeaseExpired || before == onereply.OutcomeFencedOut {
			claimed.Code = "takeover"
		}
		before = a.record.Outcome
		events = append(events, claimed)
		if a.renewals > 0 {
			renewed := claimed
			renewed.Type, renewed.Code, renewed.Count = onereply.EventRenewed, "", a.renewals
			renewed.At, renewed.Last = a.renewed, a.again
			events = append(events, renewed)
		}
	}
	return events
}

func callEvents(rows []callRow) (events []onereply.Event) {
	for _, c := range rows {
		events = append(events, onereply.Event{
			Type: onereply.EventCalled, At: c.counted, Count: 1, Call: c.number, Version: c.version,
			Attempt: c.attempt, Code: c.class, Detail: c.code, Usage: c.usage,
		})
		if c.operation != "" {
			events = append(events, onereply.Event{
				Type: onereply.EventCheckpointed, At: c.checkpointed, Count: 1, Call: c.number,
				Version: c.version, Attempt: c.attempt, Detail: c.operation,
			})
		}
	}
	return events
}

func (s *Store) storedEvents(ctx context.Context, id onereply.TaskID) (events []onereply.Event, err error) {
	err = s.do(ctx, s.db, "events_read", func(scan func(...any) error) error {
		var e onereply.Event
		var kind, attempt, why string
		err := scan(&kind, &e.Version, &attempt, &why, &e.At, &e.Last, &e.Count, &e.Worker, &e.Code, &e.Detail,
			&e.Usage.InputTokens, &e.Usage.OutputTokens)
		if err != nil {
			return err
		}
		e.Type, e.Attempt, e.Why = onereply.EventType(kind), onereply.AttemptID(attempt), onereply.Why(why)
		if e.At, e.Last = e.At.UTC(), e.Last.UTC(); e.Count == 1 {
			e.Last = onereply.Event{}.Last
		}
		events = append(events, e)
		return nil
	}, string(id))
	return events, err
}

// endEvents are the ends that have columns: accepted and failed.
func (s *Store) endEvents(ctx context.Context, t onereply.Task, calls []callRow) ([]onereply.Event, error) {
	end := onereply.Event{At: t.EndedAt, Count: 1, Version: t.Version, Attempt: t.Attempt, Worker: t.Worker}
	switch t.Status {
	case onereply.StatusFailed:
		end.Type, end.Code = onereply.EventFailed, string(t.Reason)
		if t.Error != nil {
			end.Detail = t.Error.Message
		}
		return []onereply.Event{end}, nil
	case onereply.StatusCompleted:
		err := s.do(ctx, s.db, "contents", func(scan func(...any) error) error {
			var id, input string
			var response, attempt sql.NullString
			var version sql.NullInt64
			var accepted sql.NullTime
			if err := scan(&id, &input, &response, &attempt, &version, &accepted); err != nil {
				return err
			}
			end.Type = onereply.EventAccepted
			end.Attempt, end.Version, end.At = onereply.AttemptID(attempt.String), version.Int64, utc(accepted)
			return nil
		}, []string{string(t.ID)})
		for _, c := range calls {
			if c.attempt == end.Attempt {
				end.Usage = end.Usage.Add(c.usage)
			}
		}
		return []onereply.Event{end}, err
	}
	return nil, nil
}
