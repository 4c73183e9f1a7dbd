package postgres

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// keyed names a submission's record.
type keyed struct{ scope, action, key string }

func keyOf(e store.Submission) keyed { return keyed{e.Scope, e.Action, e.Key} }

// submitRounds bounds how often losers are submitted again because the record
// they lost to was purged before it could be read.
const submitRounds = 5

// Submit implements store.Writer: winners by one statement, losers by a second,
// which sees the winner that committed while the first one waited.
func (s *Store) Submit(ctx context.Context, tx onereply.Tx, entries []store.Submission) ([]store.Submitted, error) {
	t, err := of(tx)
	if err != nil {
		return nil, err
	}
	verdicts := make([]store.Submitted, len(entries))
	open := make([]int, len(entries))
	for i := range entries {
		open[i] = i
	}
	for round := 0; len(open) > 0; round++ {
		if round == submitRounds {
			return nil, fault("submit", fmt.Errorf("key of action %s is neither free nor taken", entries[open[0]].Action))
		}
		if open, err = s.submitRound(ctx, t, entries, open, verdicts); err != nil {
			return nil, fault("submit", err)
		}
	}
	return verdicts, nil
}

// submitRound submits the open entries and returns those that must go again.
func (s *Store) submitRound(ctx context.Context, t *Tx, entries []store.Submission, open []int, verdicts []store.Submitted) ([]int, error) {
	won, err := s.submitKeys(ctx, t, entries, open)
	if err != nil {
		return nil, err
	}
	var lost []int
	for _, i := range open {
		at, ok := won[keyOf(entries[i])]
		if !ok {
			lost = append(lost, i)
			continue
		}
		verdicts[i] = created(entries[i], at)
	}
	if len(lost) == 0 {
		return nil, nil
	}
	return s.submitFound(ctx, t, entries, lost, verdicts)
}

// submitKeys runs the first statement and returns when each winner was created.
func (s *Store) submitKeys(ctx context.Context, t *Tx, entries []store.Submission, open []int) (map[keyed]time.Time, error) {
	won := make(map[keyed]time.Time, len(open))
	add := func(scan func(...any) error) error {
		var k keyed
		var at time.Time
		if err := scan(&k.scope, &k.action, &k.key, &at); err != nil {
			return err
		}
		won[k] = at.UTC()
		return nil
	}
	if len(open) == 1 {
		e := entries[open[0]]
		return won, s.do(ctx, t, "submit_one", add, e.Scope, e.Action, e.Key, e.Fingerprint, e.KeyRetention, textOrNull(e.Answer),
			string(e.ID), e.Kind, string(e.Input), e.Delay, orNull(e.Deadline), string(e.Rules.OnUnknown), string(e.Rules.Acceptance),
			int32(e.Attempts), int32(e.Calls), e.Elapsed)
	}
	return won, s.do(ctx, t, "submit", add, submitArrays(entries, open)...)
}

// submitArrays are the arguments of submit.sql.
func submitArrays(entries []store.Submission, open []int) []any {
	var a struct {
		scope, action, key, id, kind, input, onUnknown, acceptance []string
		fingerprint                                                [][]byte
		answer                                                     []*string
		retention, delay, elapsed                                  []time.Duration
		deadline                                                   []*time.Time
		attempts, calls                                            []int32
	}
	for _, i := range open {
		e := entries[i]
		a.scope, a.action, a.key = append(a.scope, e.Scope), append(a.action, e.Action), append(a.key, e.Key)
		a.fingerprint, a.retention = append(a.fingerprint, e.Fingerprint), append(a.retention, e.KeyRetention)
		a.answer = append(a.answer, textOrNull(e.Answer))
		a.id, a.kind, a.input = append(a.id, string(e.ID)), append(a.kind, e.Kind), append(a.input, string(e.Input))
		a.delay, a.elapsed = append(a.delay, e.Delay), append(a.elapsed, e.Elapsed)
		a.deadline = append(a.deadline, orNull(e.Deadline))
		a.onUnknown, a.acceptance = append(a.onUnknown, string(e.Rules.OnUnknown)), append(a.acceptance, string(e.Rules.Acceptance))
		a.attempts, a.calls = append(a.attempts, int32(e.Attempts)), append(a.calls, int32(e.Calls))
	}
	return []any{a.scope, a.action, a.key, a.fingerprint, a.retention, a.answer, a.id, a.kind, a.input, a.delay, a.deadline,
		a.onUnknown, a.acceptance, a.attempts, a.calls, a.elapsed}
}

func textOrNull(raw []byte) *string {
	if raw == nil {
		return nil
	}
	text := string(raw)
	return &text
}

// created is the task of a winner, as the statement wrote it.
func created(e store.Submission, at time.Time) store.Submitted {
	if e.Answer != nil {
		return store.Submitted{Verdict: store.Created, Answer: e.Answer}
	}
	return store.Submitted{Verdict: store.Created, Task: onereply.Task{
		ID: e.ID, Kind: e.Kind, Scope: e.Scope, Status: onereply.StatusQueued, RunAt: at.Add(e.Delay.Truncate(time.Microsecond)), CreatedAt: at,
		Budget: onereply.Budget{
			Attempts: onereply.Bound{Max: e.Attempts}, Calls: onereply.Bound{Max: e.Calls},
			ElapsedMax: e.Elapsed.Truncate(time.Microsecond), ElapsedFrom: at, Deadline: e.Deadline.Truncate(time.Microsecond),
		},
		Policy: e.Rules, Input: e.Input,
	}}
}

// submitFound answers the losers with what their keys name, and returns those
// whose record is not there any more.
func (s *Store) submitFound(ctx context.Context, t *Tx, entries []store.Submission, lost []int, verdicts []store.Submitted) ([]int, error) {
	byKey := make(map[keyed]int, len(lost))
	var scopes, actions, keys []string
	for _, i := range lost {
		k := keyOf(entries[i])
		byKey[k] = i
		scopes, actions, keys = append(scopes, k.scope), append(actions, k.action), append(keys, k.key)
	}
	var replayed []event
	err := s.do(ctx, t, "submit_found", func(scan func(...any) error) error {
		var k keyed
		var fingerprint []byte
		var answer, input, response sql.NullString
		var known bool
		var r taskRow
		if err := scan(append([]any{&k.scope, &k.action, &k.key, &fingerprint, &answer, &input, &response, &known}, r.columns()...)...); err != nil {
			return err
		}
		i := byKey[k]
		delete(byKey, k)
		switch {
		case !bytes.Equal(fingerprint, entries[i].Fingerprint):
			verdicts[i] = store.Submitted{Verdict: store.KeyReused}
		case answer.Valid:
			verdicts[i] = store.Submitted{Verdict: store.Existing, Answer: []byte(answer.String)}
		case !known:
			return fmt.Errorf("key of action %s names a task that is not there", k.action)
		default:
			task := r.task()
			task.Input = []byte(input.String)
			if response.Valid && task.Status == onereply.StatusCompleted {
				task.Response = []byte(response.String)
			}
			verdicts[i] = store.Submitted{Verdict: store.Existing, Task: task}
			replayed = append(replayed, event{task: task.ID, kind: onereply.EventReplayed})
		}
		return nil
	}, scopes, actions, keys)
	if err != nil {
		return nil, err
	}
	var again []int
	for _, i := range lost {
		if _, missing := byKey[keyOf(entries[i])]; missing {
			again = append(again, i)
		}
	}
	return again, s.events(ctx, t, replayed)
}

// event is a step that leaves no column elsewhere.
type event struct {
	task    onereply.TaskID
	kind    onereply.EventType
	version int64
	attempt onereply.AttemptID
	at      time.Time // zero: now
	worker  string
	code    string
	detail  string
}

// events writes steps, each once per task and type in one statement.
func (s *Store) events(ctx context.Context, r runner, all []event) error {
	if len(all) == 0 {
		return nil
	}
	var tasks, kinds, attempts, workers, codes, details []string
	var versions []int64
	var at []*time.Time
	seen := make(map[event]bool, len(all))
	for _, e := range all {
		if seen[e] {
			continue
		}
		seen[e] = true
		tasks, kinds, versions = append(tasks, string(e.task)), append(kinds, string(e.kind)), append(versions, e.version)
		attempts, at, workers = append(attempts, string(e.attempt)), append(at, orNull(e.at)), append(workers, e.worker)
		codes, details = append(codes, e.code), append(details, e.detail)
	}
	return s.do(ctx, r, "event", nil, tasks, kinds, versions, attempts, at, workers, codes, details)
}
