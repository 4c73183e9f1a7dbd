package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Finish implements store.Writer: one statement per kind of ending.
func (s *Store) Finish(ctx context.Context, tx onereply.Tx, entries []store.Ending) ([]store.Verdict, error) {
	t, err := of(tx)
	if err != nil {
		return nil, err
	}
	guards := make([]onereply.Guard, len(entries))
	all := make([]int, len(entries))
	for i, e := range entries {
		guards[i], all[i] = e.Guard, i
		if e.Op < store.Accept || e.Op > store.Release {
			return nil, fmt.Errorf("%w: ending op %d", onereply.ErrInvalid, e.Op)
		}
	}
	verdicts := make([]store.Verdict, len(entries))
	for _, wave := range waves(guards, all) {
		if err := s.finishWave(ctx, t, entries, guards, wave, verdicts); err != nil {
			return nil, fault("finish", err)
		}
	}
	return verdicts, nil
}

func (s *Store) finishWave(ctx context.Context, t *Tx, entries []store.Ending, guards []onereply.Guard, wave []int, verdicts []store.Verdict) error {
	byOp := make(map[store.EndingOp][]int)
	for _, i := range wave {
		byOp[entries[i].Op] = append(byOp[entries[i].Op], i)
	}
	var refused []int
	for op := store.Accept; op <= store.Release; op++ {
		if len(byOp[op]) == 0 {
			continue
		}
		o, err := s.inTurn(ctx, t, endingOf(endings[op], op, entries, guards), guards, byOp[op])
		if err != nil {
			return err
		}
		ended(entries, verdicts, o.done)
		if op == store.Accept && len(o.refused) > 0 {
			// Under first-valid a late answer may still fill an empty slot. The rows
			// are locked by now.
			late, err := s.run(ctx, t, endingOf("accept_first_valid", op, entries, guards), guards, o.refused)
			if err != nil {
				return err
			}
			ended(entries, verdicts, late.done)
			o.refused = append(late.refused, late.busy...)
		}
		refused = append(refused, o.refused...)
	}
	why, stands, err := s.refuse(ctx, t, guards, refused, func(i int) late {
		return late{closed: entries[i].Closed, ended: true, cause: entries[i].Failure}
	})
	for i, r := range why {
		verdicts[i] = store.Verdict{Refused: r, Task: stands[i]}
	}
	return err
}

var endings = map[store.EndingOp]string{
	store.Accept: "accept", store.Fail: "fail", store.Retry: "retry", store.Release: "release",
}

func ended(entries []store.Ending, verdicts []store.Verdict, done map[int]*written) {
	for i, w := range done {
		task := w.extra.(onereply.Task)
		if entries[i].Op == store.Accept {
			task.Response = entries[i].Response
		}
		verdicts[i] = store.Verdict{Task: &task}
	}
}

// endingOf is the guarded statement of an ending.
func endingOf(name string, op store.EndingOp, entries []store.Ending, guards []onereply.Guard) guarded {
	args := func(chosen []int) []any {
		tasks, versions, tried := guardArgs(guards, chosen)
		return append([]any{tasks, versions, tried}, columnsOf(entries, chosen, func(e store.Ending, _ bool) []any {
			columns := closedArgs(e.Closed)
			f := onereply.Failure{}
			if e.Failure != nil {
				f = *e.Failure
			}
			switch op {
			case store.Accept:
				return append(columns, string(e.Response))
			case store.Fail:
				columns = append(columns, string(e.Reason))
			case store.Retry:
				columns = append(columns, e.Delay)
			}
			return append(columns, string(e.Outcome), e.Failure != nil, f.Code, f.Message)
		})...)
	}
	scan := scanEnded
	if name == "accept_first_valid" {
		scan = scanFirstValid
	}
	st := guarded{name: name, args: args, scan: scan}
	if op == store.Accept || op == store.Fail {
		st.behind = "lock_ends"
	}
	return st
}

// scanEnded reads the id that was found, the whole task where it was ended, and
// its input.
func scanEnded(scan func(...any) error) (onereply.TaskID, *written, error) {
	return scanTask(scan)
}

// scanFirstValid reads also the version of the attempt whose answer was taken,
// which may be an earlier one than the task's.
func scanFirstValid(scan func(...any) error) (onereply.TaskID, *written, error) {
	var by sql.NullInt64
	id, w, err := scanTask(scan, &by)
	if w != nil {
		w.version = by.Int64
	}
	return id, w, err
}

func scanTask(scan func(...any) error, more ...any) (onereply.TaskID, *written, error) {
	var found string
	var r taskRow
	var input sql.NullString
	if err := scan(append(append(append([]any{&found}, r.columns()...), &input), more...)...); err != nil {
		return "", nil, err
	}
	if !r.id.Valid {
		return onereply.TaskID(found), nil, nil
	}
	t := r.task()
	t.Input = []byte(input.String)
	return onereply.TaskID(found), &written{version: t.Version, attempt: t.Attempt, extra: t}, nil
}
