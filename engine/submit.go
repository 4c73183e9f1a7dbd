package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// flushTimeout bounds a flush that the engine runs for its callers, whose own
// contexts do not end it: a caller that hangs up must not undo what others wait
// for.
const flushTimeout = 30 * time.Second

// maxKeyBytes is the longest idempotency key.
const maxKeyBytes = 255

type submitItem struct {
	ctx context.Context // for its values only; never for its end
	s   onereply.Submission
}

// Submit creates the task of a submission, or finds the one its key names (P1).
// Concurrent submissions share a transaction; one that fails is undone alone.
//
// A caller that hangs up gets its context's error and does not know whether the
// task was created: the same submission again tells.
func (e *Engine) Submit(ctx context.Context, s onereply.Submission) (onereply.Submitted, error) {
	if err := outside(ctx, "Submit"); err != nil {
		return onereply.Submitted{}, err
	}
	s, err := e.prepare(s)
	if err != nil {
		return onereply.Submitted{}, err
	}
	return e.submits.do(ctx, submitItem{ctx: ctx, s: s})
}

// SubmitTx is Submit inside the caller's transaction: the caller's rows, the
// task and its key commit together or not at all (P2). After the commit call
// Nudge, or let the poll find the task. A transaction of [Engine.InTx] nudges
// by itself.
func (e *Engine) SubmitTx(ctx context.Context, tx onereply.Tx, s onereply.Submission) (onereply.Submitted, error) {
	s, err := e.prepare(s)
	if err != nil {
		return onereply.Submitted{}, err
	}
	done, err := e.submitTx(ctx, tx, []onereply.Submission{s})
	if err != nil {
		return onereply.Submitted{}, err
	}
	if done[0].err == nil && done[0].value.Created {
		afterCommit(ctx, e.Nudge)
	}
	return done[0].value, done[0].err
}

// SubmitManyTx is SubmitTx for many submissions at once, in one statement: the
// way to write a batch. A key that was used before gives its task; one that was
// used with other inputs, or stands twice in the batch, fails the whole batch,
// and the caller rolls back. The results are in the order of the submissions.
func (e *Engine) SubmitManyTx(ctx context.Context, tx onereply.Tx, subs []onereply.Submission) ([]onereply.Submitted, error) {
	prepared := make([]onereply.Submission, len(subs))
	seen := make(map[[3]string]bool, len(subs))
	for i, s := range subs {
		var err error
		if prepared[i], err = e.prepare(s); err != nil {
			return nil, fmt.Errorf("submission %d: %w", i, err)
		}
		key := [3]string{prepared[i].Scope, prepared[i].Action, prepared[i].Key}
		if seen[key] {
			return nil, fmt.Errorf("%w: submission %d: its key stands twice in the batch", onereply.ErrInvalid, i)
		}
		seen[key] = true
	}
	if len(prepared) == 0 {
		return nil, nil
	}
	results, err := e.submitTx(ctx, tx, prepared)
	if err != nil {
		return nil, err
	}
	done, fresh := make([]onereply.Submitted, len(results)), false
	for i, r := range results {
		if r.err != nil {
			return nil, fmt.Errorf("submission %d: %w", i, r.err)
		}
		done[i], fresh = r.value, fresh || r.value.Created
	}
	if fresh {
		afterCommit(ctx, e.Nudge)
	}
	return done, nil
}

// prepare fills what the caller left to the engine and refuses what cannot be
// submitted, before anything is written.
func (e *Engine) prepare(s onereply.Submission) (onereply.Submission, error) {
	refuse := func(format string, args ...any) (onereply.Submission, error) {
		return s, fmt.Errorf("%w: submission: %s", onereply.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if s.Action == "" {
		s.Action = s.Kind
	}
	switch {
	case s.Key == "" || len(s.Key) > maxKeyBytes:
		return refuse("the key must have 1 to %d bytes", maxKeyBytes)
	case s.Action == "":
		return refuse("an action or a kind is needed")
	case s.Scope == AnyScope:
		return refuse("the scope %q stands for all of them", AnyScope)
	case len(s.Fingerprint) == 0:
		return refuse("a fingerprint is needed")
	case s.Answer != nil:
		if s.Kind != "" || s.Input != nil {
			return refuse("a request with an answer makes no task")
		}
		return s, nil
	case s.Delay < 0:
		return refuse("the delay must not be negative")
	case s.OnUnknown != "" && s.OnUnknown != onereply.UnknownRetry && s.OnUnknown != onereply.UnknownStop:
		return refuse("on unknown outcome must be retry or stop")
	}
	k, err := e.kind(s.Kind)
	switch {
	case err != nil:
		return s, err
	case !validDeadline(s.Deadline):
		return refuse("the deadline must lie in the years 1971 to 9999")
	case s.Delay >= k.Policy.MaxElapsed:
		return refuse("the delay must be shorter than the kind's elapsed budget of %s", k.Policy.MaxElapsed)
	case s.Delay > 0 && !s.Deadline.IsZero() && time.Until(s.Deadline) <= s.Delay:
		return refuse("the task would be due only after its deadline")
	}
	if s.TaskID == "" {
		s.TaskID = onereply.TaskID(e.o.IDs.New())
	}
	return s, nil
}

// validDeadline refuses times that a store or JSON could not hold: both leave the
// first years and those beyond 9999 to other meanings, or to none.
func validDeadline(t time.Time) bool {
	year := t.UTC().Year()
	return t.IsZero() || year > 1970 && year <= 9999
}

// flushSubmits runs a batch of submissions in one transaction. When that fails
// they run one by one, so that one caller's hook or conflict is its own alone.
func (e *Engine) flushSubmits(items []submitItem) []result[onereply.Submitted] {
	results, err := e.trySubmits(items)
	if err == nil {
		return results
	}
	results = make([]result[onereply.Submitted], len(items))
	for i, item := range items {
		results[i] = e.submitAlone(item, err, len(items) == 1)
	}
	return results
}

// submitAlone runs one submission after its batch failed with before. When that
// failure may have been a commit whose answer was lost, the key is read again,
// which is what submitting again does: a task with the id we minted is ours (P11).
func (e *Engine) submitAlone(item submitItem, before error, wasAlone bool) result[onereply.Submitted] {
	unknown := errors.Is(before, onereply.ErrCommitUnknown)
	if wasAlone && !unknown {
		return result[onereply.Submitted]{err: before}
	}
	results, err := e.trySubmits([]submitItem{item})
	if err != nil {
		return result[onereply.Submitted]{err: err}
	}
	r := results[0]
	if unknown && r.err == nil && r.value.Task.ID == item.s.TaskID && item.s.TaskID != "" {
		r.value.Created = true
	}
	return r
}

func (e *Engine) trySubmits(items []submitItem) ([]result[onereply.Submitted], error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(items[0].ctx), flushTimeout)
	defer cancel()
	entries := make([]onereply.Submission, len(items))
	for i, item := range items {
		entries[i] = item.s
	}
	var results []result[onereply.Submitted]
	err := e.store.InTx(ctx, func(ctx context.Context, tx onereply.Tx) (err error) {
		results, err = e.submitTx(inside(ctx), tx, entries)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		if r.err == nil && r.value.Created && r.value.Task.ID != "" {
			e.Nudge()
			break
		}
	}
	return results, nil
}

// submitTx writes prepared submissions and runs the Created hooks of those that
// created a task.
func (e *Engine) submitTx(ctx context.Context, tx onereply.Tx, subs []onereply.Submission) ([]result[onereply.Submitted], error) {
	entries := make([]store.Submission, len(subs))
	for i, s := range subs {
		entries[i] = e.resolve(s)
	}
	verdicts, err := e.store.Submit(ctx, tx, entries)
	if err != nil {
		return nil, err
	}
	results := make([]result[onereply.Submitted], len(subs))
	var created []onereply.Task
	for i, v := range verdicts {
		results[i].value = onereply.Submitted{Created: v.Verdict == store.Created, Task: v.Task, Answer: v.Answer}
		switch {
		case v.Verdict == store.KeyReused:
			results[i] = result[onereply.Submitted]{err: fmt.Errorf("submit %s in scope %q: %w", subs[i].Action, subs[i].Scope, onereply.ErrKeyReused)}
		case v.Verdict == store.Created && v.Task.ID != "":
			created = append(created, v.Task)
		}
	}
	err = e.byKind(created, func(k onereply.Kind, tasks []onereply.Task) error {
		if k.Created == nil {
			return nil
		}
		return e.hook("created", k.Name, func() error { return k.Created(ctx, tx, tasks) })
	})
	if err != nil {
		return nil, err
	}
	for _, t := range created {
		e.o.Observer.Observe(onereply.Step{Type: onereply.EventSubmitted, Task: t.ID, Kind: t.Kind})
	}
	return results, nil
}

func (e *Engine) resolve(s onereply.Submission) store.Submission {
	entry := store.Submission{
		Scope: s.Scope, Action: s.Action, Key: s.Key,
		Fingerprint: s.Fingerprint, KeyRetention: e.o.KeyRetention, Answer: s.Answer,
	}
	if s.Answer != nil {
		return entry
	}
	p := e.kinds[s.Kind].Policy
	entry.ID, entry.Kind, entry.Input = s.TaskID, s.Kind, s.Input
	entry.Delay, entry.Deadline = s.Delay, s.Deadline
	entry.Rules = onereply.Rules{OnUnknown: p.OnUnknown, Acceptance: p.Acceptance}
	if s.OnUnknown != "" {
		entry.Rules.OnUnknown = s.OnUnknown
	}
	entry.Attempts, entry.Calls, entry.Elapsed = p.MaxAttempts, p.MaxCalls, p.MaxElapsed
	return entry
}

type insideKey struct{}

// inside marks the context of a function that runs in a transaction of the
// engine's, a hook above all.
func inside(ctx context.Context) context.Context { return context.WithValue(ctx, insideKey{}, true) }

// outside refuses what has a transaction of its own and would wait for the one
// that it was called in.
func outside(ctx context.Context, op string) error {
	if ctx.Value(insideKey{}) != nil {
		return fmt.Errorf("%w: %s inside a transaction waits for itself; use SubmitTx or CancelTx with the transaction at hand", onereply.ErrInvalid, op)
	}
	return nil
}

// commitHooks are what to do once the transaction of an InTx has committed.
type commitHooks struct{ run []func() }

type commitHooksKey struct{}

// afterCommit runs f once the InTx that ctx belongs to has committed. In a
// transaction of the caller's own nobody tells us, and polling finds it.
func afterCommit(ctx context.Context, f func()) {
	if h, ok := ctx.Value(commitHooksKey{}).(*commitHooks); ok {
		h.run = append(h.run, f)
	}
}

// InTx runs f in a transaction of the store: it commits when f returns nil and
// is undone otherwise. f must not wait for anything slow (P9), and must not
// call Submit, Cancel or Resume, which have transactions of their own.
func (e *Engine) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	if err := outside(ctx, "InTx"); err != nil {
		return err
	}
	h := &commitHooks{}
	err := e.store.InTx(context.WithValue(ctx, commitHooksKey{}, h), func(ctx context.Context, tx onereply.Tx) error {
		h.run = nil // a store may run f again
		return f(inside(ctx), tx)
	})
	if err != nil {
		return err
	}
	for _, run := range h.run {
		run()
	}
	return nil
}
