package onereply

import (
	"context"
	"encoding/json"
	"fmt"
)

// Definition is a kind of task with a typed input and response.
//
// Work runs an attempt and hands back a candidate; it never saves by itself.
// Created and Ended write the application's own rows inside the transaction of
// every creation and every end (P2, P4); either may be nil.
//
// Work may run more than once for a task, at the same time even (a worker that
// lost its lease does not know it yet); hooks run exactly once per committed
// creation and end, though one that is rolled back runs again. Hooks run while
// the transaction is open: they must be quick and must not call Submit, Cancel
// or anything else that has a transaction of its own; SubmitTx and CancelTx take
// the hook's. An Ended hook that keeps failing keeps its task from ending.
type Definition[In, Out any] struct {
	Name   string
	Policy Policy

	// Bind returns the bytes a submission of this kind is bound to. Nil: the
	// canonical JSON of the input without members left at zero.
	Bind func(In) ([]byte, error)

	Work    func(context.Context, Attempt, In) (Out, error)
	Created func(context.Context, Tx, []Created[In]) error
	Ended   func(context.Context, Tx, []Ended[In, Out]) error
}

// Submission binds an input to a scope and a key. The error says which value
// cannot be used and matches ErrInvalid.
func (d *Definition[In, Out]) Submission(scope, key string, in In) (Submission, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return Submission{}, fmt.Errorf("%w: input of kind %s: %w", ErrInvalid, d.Name, err)
	}
	bind := func(In) ([]byte, error) { return Canonical(raw) }
	if d.Bind != nil {
		bind = d.Bind
	}
	bound, err := bind(in)
	if err != nil {
		return Submission{}, fmt.Errorf("%w: binding input of kind %s: %w", ErrInvalid, d.Name, err)
	}
	return Submission{
		Scope: scope, Action: d.Name, Key: key, Kind: d.Name,
		Input: raw, Fingerprint: Fingerprint(d.Name, bound),
	}, nil
}

// Kind returns the erased form that an engine runs.
func (d *Definition[In, Out]) Kind() Kind {
	k := Kind{Name: d.Name, Policy: d.Policy.WithDefaults()}
	if d.Work != nil {
		k.Work = func(ctx context.Context, a Attempt) (json.RawMessage, error) {
			in, err := decode[In](d.Name, a.Assignment().Input)
			if err != nil {
				return nil, RefusedPermanent("invalid_input", err)
			}
			out, err := d.Work(ctx, a, in)
			if err != nil {
				return nil, err
			}
			raw, err := json.Marshal(out)
			if err != nil {
				return nil, RefusedPermanent("invalid_response", fmt.Errorf("response of kind %s: %w", d.Name, err))
			}
			return raw, nil
		}
	}
	if d.Created != nil {
		k.Created = func(ctx context.Context, tx Tx, tasks []Task) error {
			created := make([]Created[In], len(tasks))
			for i, t := range tasks {
				in, err := decode[In](d.Name, t.Input)
				if err != nil {
					return err
				}
				created[i] = Created[In]{Task: t, In: in}
			}
			return d.Created(ctx, tx, created)
		}
	}
	if d.Ended != nil {
		k.Ended = func(ctx context.Context, tx Tx, tasks []Task) error {
			ended, err := decodeEnded[In, Out](d.Name, tasks)
			if err != nil {
				return err
			}
			return d.Ended(ctx, tx, ended)
		}
	}
	return k
}

func decodeEnded[In, Out any](kind string, tasks []Task) ([]Ended[In, Out], error) {
	ended := make([]Ended[In, Out], len(tasks))
	for i, t := range tasks {
		in, err := decode[In](kind, t.Input)
		if err != nil && t.Status == StatusCompleted {
			return nil, err
		}
		// A task whose input can no longer be read must still be able to end.
		ended[i] = Ended[In, Out]{Task: t, In: in}
		if t.Status == StatusCompleted {
			out, err := decode[Out](kind, t.Response)
			if err != nil {
				return nil, err
			}
			ended[i].Out = &out
		}
	}
	return ended, nil
}

func decode[T any](kind string, raw json.RawMessage) (v T, err error) {
	if err = json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("decoding %T of kind %s: %w", v, kind, err)
	}
	return v, nil
}

// Kind is the erased form of a [Definition]: what an engine runs. Tasks given
// to the hooks carry their input, and their response where completed.
type Kind struct {
	Name    string
	Policy  Policy
	Work    func(context.Context, Attempt) (json.RawMessage, error)
	Created func(context.Context, Tx, []Task) error
	Ended   func(context.Context, Tx, []Task) error
}
