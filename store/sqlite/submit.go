package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Submit implements store.Writer.
func (s *Store) Submit(ctx context.Context, tx onereply.Tx, entries []store.Submission) ([]store.Submitted, error) {
	q, err := s.in(ctx, tx)
	if err != nil {
		return nil, fault("submit", err)
	}
	verdicts := make([]store.Submitted, len(entries))
	for i, e := range entries {
		if verdicts[i], err = q.submit(ctx, e); err != nil {
			return nil, fault("submit", err)
		}
	}
	return verdicts, nil
}

func (q *querier) submit(ctx context.Context, e store.Submission) (store.Submitted, error) {
	var answer any
	if e.Answer != nil {
		answer = string(e.Answer)
	}
	won, err := q.each(ctx, "submit_key", func(row) error { return nil },
		"scope", e.Scope, "action", e.Action, "key", e.Key, "fingerprint", e.Fingerprint,
		"task", e.ID, "answer", answer, "now", q.now, "expires", q.now+e.KeyRetention.Milliseconds())
	if err != nil {
		return store.Submitted{}, err
	}
	switch {
	case won == 0:
		return q.existing(ctx, e)
	case e.Answer != nil:
		return store.Submitted{Verdict: store.Created, Answer: e.Answer}, nil
	}
	return q.create(ctx, e)
}

// create writes the task whose key was won.
func (q *querier) create(ctx context.Context, e store.Submission) (store.Submitted, error) {
	now := moment(q.now)
	t := onereply.Task{
		ID: e.ID, Kind: e.Kind, Scope: e.Scope, Status: onereply.StatusQueued,
		RunAt: now.Add(e.Delay.Truncate(time.Millisecond)), CreatedAt: now,
		Budget: onereply.Budget{
			Attempts: onereply.Bound{Max: e.Attempts}, Calls: onereply.Bound{Max: e.Calls},
			ElapsedMax: e.Elapsed.Truncate(time.Millisecond), ElapsedFrom: now, Deadline: moment(millis(e.Deadline)),
		},
		Policy: e.Rules, Input: e.Input,
	}
	_, err := q.exec(ctx, "submit_task", "task", t.ID, "kind", t.Kind, "scope", t.Scope, "now", q.now,
		"run_at", millis(t.RunAt), "attempts", e.Attempts, "calls", e.Calls, "elapsed", e.Elapsed.Milliseconds(),
		"deadline", millis(e.Deadline), "on_unknown", e.Rules.OnUnknown, "acceptance", e.Rules.Acceptance)
	if err != nil {
		if isConstraint(err) {
			return store.Submitted{}, fmt.Errorf("%w: task id %s: %w", onereply.ErrInvalid, e.ID, err)
		}
		return store.Submitted{}, err
	}
	_, err = q.exec(ctx, "submit_input", "task", t.ID, "action", e.Action, "key", e.Key, "input", string(e.Input))
	return store.Submitted{Verdict: store.Created, Task: t}, err
}

// existing answers the loser: with what the key names, or that it is bound to
// other inputs.
func (q *querier) existing(ctx context.Context, e store.Submission) (store.Submitted, error) {
	var fingerprint, answer []byte
	var id onereply.TaskID
	found, err := q.each(ctx, "submit_found", func(r row) error {
		fingerprint, id, answer = r.bytes(0), onereply.TaskID(r.text(1)), r.bytes(2)
		return nil
	}, "scope", e.Scope, "action", e.Action, "key", e.Key)
	switch {
	case err != nil:
		return store.Submitted{}, err
	case found == 0:
		return store.Submitted{}, fmt.Errorf("key of action %s is neither free nor taken", e.Action)
	case !bytes.Equal(fingerprint, e.Fingerprint):
		return store.Submitted{Verdict: store.KeyReused}, nil
	case id == "":
		return store.Submitted{Verdict: store.Existing, Answer: answer}, nil
	}
	t, known, err := q.task(ctx, id)
	if err != nil {
		return store.Submitted{}, err
	}
	if !known {
		return store.Submitted{}, fmt.Errorf("key of action %s names task %s, which is not there", e.Action, id)
	}
	if err := q.fill(ctx, &t.Task); err != nil {
		return store.Submitted{}, err
	}
	if err := q.event(ctx, event{task: id, kind: onereply.EventReplayed}); err != nil {
		return store.Submitted{}, err
	}
	return store.Submitted{Verdict: store.Existing, Task: t.Task}, nil
}

// event is a step that leaves no column elsewhere.
type event struct {
	task    onereply.TaskID
	kind    onereply.EventType
	version int64
	attempt onereply.AttemptID
	why     onereply.Why
	worker  string
	code    string
	detail  string
	usage   onereply.Usage
}

func (q *querier) event(ctx context.Context, e event) error {
	_, err := q.exec(ctx, "event", "task", e.task, "type", e.kind, "version", e.version, "attempt", e.attempt,
		"why", e.why, "now", q.now, "worker", e.worker, "code", e.code, "detail", e.detail,
		"input_tokens", e.usage.InputTokens, "output_tokens", e.usage.OutputTokens)
	return err
}
