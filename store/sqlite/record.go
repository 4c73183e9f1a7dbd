package sqlite

import (
	"context"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Record implements store.Writer. Renewals alone go ahead of everything that
// waits; drafts alone may commit without waiting for the disk.
func (s *Store) Record(ctx context.Context, entries []store.Record) ([]store.Verdict, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	var verdicts []store.Verdict
	err := s.shared(ctx, "Record", laneOf(entries), func(ctx context.Context, tx *Tx) error {
		q, err := s.in(ctx, tx)
		if err != nil {
			return err
		}
		verdicts = make([]store.Verdict, len(entries))
		for i, e := range entries {
			if verdicts[i], err = q.record(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fault("record", err)
	}
	return verdicts, nil
}

func laneOf(entries []store.Record) lane {
	l := map[store.RecordOp]lane{store.Renew: renewals, store.DraftText: drafts}[entries[0].Op]
	for _, e := range entries {
		if e.Op != entries[0].Op {
			return normal
		}
	}
	return l
}

// record makes one guarded write, or says why not.
func (q *querier) record(ctx context.Context, e store.Record) (v store.Verdict, err error) {
	var done bool
	switch e.Op {
	case store.Renew:
		done, err = q.renew(ctx, e, &v)
	case store.CountCall:
		done, err = q.count(ctx, e, &v)
	case store.CloseCall:
		done, err = q.close(ctx, e.Guard, e.Closed)
	case store.Checkpoint:
		done, err = q.checkpoint(ctx, e)
	case store.DraftText:
		done, err = q.guarded(ctx, "draft", e.Guard, "seq", e.Seq, "text", e.Text)
	case store.Progress:
		state := e.State
		if state == nil {
			state = []byte{}
		}
		done, err = q.guarded(ctx, "progress", e.Guard, "state", state)
	case store.Late:
	default:
		err = fmt.Errorf("%w: record op %d", onereply.ErrInvalid, e.Op)
	}
	if err != nil || done {
		return v, err
	}
	r, err := q.refuse(ctx, e.Guard, e.Closed)
	if err != nil {
		return v, err
	}
	if e.Op == store.Late {
		err = q.finishAttempt(ctx, e.Guard, onereply.OutcomeFencedOut, nil)
	}
	return store.Verdict{Refused: r}, err
}

// guarded runs a statement that carries the guard and says whether it took hold.
func (q *querier) guarded(ctx context.Context, name string, g onereply.Guard, args ...any) (bool, error) {
	args = append(args, "task", g.Task, "version", g.Version, "attempt", g.Attempt, "now", q.now)
	n, err := q.exec(ctx, name, args...)
	return n > 0, err
}

func (q *querier) renew(ctx context.Context, e store.Record, v *store.Verdict) (done bool, err error) {
	n, err := q.each(ctx, "renew", func(r row) error {
		v.LeaseFor = span(r.integer(0) - q.now)
		return nil
	}, "task", e.Guard.Task, "version", e.Guard.Version, "attempt", e.Guard.Attempt, "now", q.now, "lease", e.Lease.Milliseconds())
	if err != nil || n == 0 {
		return false, err
	}
	_, err = q.exec(ctx, "renew_count", "task", e.Guard.Task, "version", e.Guard.Version, "now", q.now)
	return true, err
}

// count counts a call. A call of an earlier attempt that is still open is
// closed as unknown: this one follows it.
func (q *querier) count(ctx context.Context, e store.Record, v *store.Verdict) (done bool, err error) {
	if e.Closed != nil {
		if done, err := q.close(ctx, e.Guard, e.Closed); err != nil || !done {
			return false, err
		}
	}
	g := e.Guard
	n, err := q.each(ctx, "count", func(r row) error { v.Call = r.count(0); return nil },
		"task", g.Task, "version", g.Version, "attempt", g.Attempt, "now", q.now)
	if err != nil {
		return false, err
	}
	if n == 0 {
		held, err := q.held(ctx, g)
		v.CallsExhausted = held
		return held, err
	}
	if _, err := q.exec(ctx, "count_follow", "task", g.Task, "version", g.Version, "now", q.now); err != nil {
		return false, err
	}
	_, err = q.exec(ctx, "count_call", "task", g.Task, "number", v.Call, "version", g.Version, "attempt", g.Attempt, "now", q.now)
	return true, err
}

// held reports whether the assignment is current and its lease not over.
func (q *querier) held(ctx context.Context, g onereply.Guard) (bool, error) {
	n, err := q.each(ctx, "guard", func(row) error { return nil },
		"task", g.Task, "version", g.Version, "attempt", g.Attempt, "now", q.now)
	return n > 0, err
}

// close closes a call under the guard. Nil closes none, and only checks the guard.
func (q *querier) close(ctx context.Context, g onereply.Guard, c *store.ClosedCall) (bool, error) {
	number := 0
	if c != nil {
		number = c.Number
	}
	done, err := q.guarded(ctx, "close", g, "number", number)
	if err != nil || !done || c == nil {
		return done, err
	}
	return true, q.closeCall(ctx, g.Task, c)
}

func (q *querier) closeCall(ctx context.Context, id onereply.TaskID, c *store.ClosedCall) error {
	_, err := q.exec(ctx, "close_call", "task", id, "number", c.Number, "now", q.now, "class", c.Class, "code", c.Code,
		"requests", c.Requests, "input_tokens", c.Usage.InputTokens, "output_tokens", c.Usage.OutputTokens)
	return err
}

// checkpoint saves the operation on the open call. An assignment without an
// open call has nothing to save it on, which is the caller's mistake.
func (q *querier) checkpoint(ctx context.Context, e store.Record) (bool, error) {
	done, err := q.guarded(ctx, "checkpoint", e.Guard, "operation", e.Operation)
	if err != nil || done {
		return done, err
	}
	held, err := q.held(ctx, e.Guard)
	if err == nil && held {
		err = fmt.Errorf("%w: checkpoint of %s without an open call", onereply.ErrInvalid, e.Guard)
	}
	return false, err
}

// refuse says why a guarded write was refused and leaves the event that shows
// it, with the tokens that were wasted. A cancelled task gets none, nor does one
// that the assignment has ended itself: that its attempt learns of it is no news.
func (q *querier) refuse(ctx context.Context, g onereply.Guard, c *store.ClosedCall) (*onereply.Refusal, error) {
	r, _, err := q.refusal(ctx, g, c)
	return r, err
}

func (q *querier) refusal(ctx context.Context, g onereply.Guard, c *store.ClosedCall) (*onereply.Refusal, *onereply.Task, error) {
	t, found, err := q.task(ctx, g.Task)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return onereply.Refuse(g, nil), nil, nil
	}
	r := onereply.Refuse(g, &t.Task)
	if r.Why == onereply.WhyCancelled || r.OwnEnd() {
		return r, &t.Task, nil
	}
	e := event{task: g.Task, kind: onereply.EventFencedOut, version: g.Version, attempt: g.Attempt, why: r.Why}
	if c != nil {
		e.code, e.usage = string(c.Class), c.Usage
	}
	return r, &t.Task, q.event(ctx, e)
}

// finishAttempt records how an attempt ended, unless it has an outcome already.
func (q *querier) finishAttempt(ctx context.Context, g onereply.Guard, o onereply.AttemptOutcome, f *onereply.Failure) error {
	var code, message string
	if f != nil {
		code, message = f.Code, f.Message
	}
	_, err := q.exec(ctx, "finish_attempt", "task", g.Task, "version", g.Version, "attempt", g.Attempt,
		"outcome", o, "now", q.now, "error_code", code, "error_message", message)
	return err
}
