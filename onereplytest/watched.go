package onereplytest

import (
	"context"
	"encoding/json"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/sqlite"
)

type processKey struct{}

// watched is the kind as a process runs it: its points are met, and what its
// hooks and its Work did is noted.
func (p *Process) watched(k onereply.Kind) onereply.Kind {
	if work := k.Work; work != nil {
		k.Work = func(ctx context.Context, a onereply.Attempt) (json.RawMessage, error) {
			p.began(a.Assignment().Task.ID, 1)
			defer p.began(a.Assignment().Task.ID, -1)
			if err := p.at(ctx, Claimed); err != nil {
				return nil, err
			}
			out, err := work(context.WithValue(ctx, processKey{}, p), &attempt{Attempt: a, p: p})
			gone := p.pass()
			if err == nil && gone == nil {
				gone = p.at(ctx, Answered)
			}
			if gone != nil {
				return nil, gone
			}
			return out, err
		}
	}
	k.Created = p.hook(createdHook, k.Created)
	k.Ended = p.hook(endedHook, k.Ended)
	return k
}

func (p *Process) began(id onereply.TaskID, n int) {
	p.mu.Lock()
	p.works += n
	p.mu.Unlock()
	if n > 0 {
		p.w.note(id, func(s *story) { s.works++ })
	}
}

// hook runs the kind's own hook and leaves a row of the kit's beside what it
// wrote, so that the rows tell which runs were committed.
func (p *Process) hook(name hookName, own func(context.Context, onereply.Tx, []onereply.Task) error) func(context.Context, onereply.Tx, []onereply.Task) error {
	return func(ctx context.Context, tx onereply.Tx, tasks []onereply.Task) error {
		for _, t := range tasks {
			p.w.note(t.ID, func(s *story) { s.runs[name]++ })
		}
		if own != nil {
			if err := own(ctx, tx, tasks); err != nil {
				return err
			}
		}
		for _, t := range tasks {
			_, err := sqlite.Unwrap(tx).ExecContext(ctx,
				`INSERT INTO onereplytest_hooks (task_id, hook, status) VALUES (?, ?, ?)`, string(t.ID), string(name), string(t.Status))
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// attempt is the attempt that Work sees: the engine's own, with points in its calls.
type attempt struct {
	onereply.Attempt
	p *Process
}

// Call counts the call, meets [Counted], and sends.
func (a *attempt) Call(ctx context.Context, send func(context.Context, onereply.Call) error) error {
	err := a.Attempt.Call(ctx, func(ctx context.Context, c onereply.Call) error {
		if err := a.p.at(ctx, Counted); err != nil {
			return err
		}
		return send(ctx, c)
	})
	if gone := a.p.pass(); gone != nil {
		return gone
	}
	return err
}
