package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Every guarded write, many at once, has the shape that renew.sql shows best:
//
//  1. l locks the rows by id, passing over those that somebody else has locked,
//     so one locked row never holds its neighbours;
//  2. g reads clock_timestamp() after the lock is held;
//  3. d writes where version, attempt, status and lease are good by that clock;
//  4. the result has one row for every row that could be locked, with the version
//     and attempt of the write that was done in it.
//
// An entry whose task is absent from the result was busy: it is tried alone,
// behind a statement that waits for the row's lock (lock.sql) in the same
// transaction, where the same statement then finds the row locked by itself and
// reads its clock after the wait. An entry that is present under another version
// or attempt was refused. One statement holds one entry a task; a second entry
// for a task goes into the next wave.

// written is what came back for one task.
type written struct {
	version int64
	attempt onereply.AttemptID
	extra   any
}

// guarded is one kind of guarded statement with the arguments of its entries.
type guarded struct {
	name   string
	behind string                    // a statement on the same ids that goes before it; empty: none
	args   func(entries []int) []any // the arrays, beginning with ids, versions, attempts
	// scan reads a row: the id, the version and attempt that was written (null:
	// refused), and what the verdict needs beside.
	scan func(scan func(...any) error) (id onereply.TaskID, w *written, err error)
}

// outcome says what a guarded statement did: entries that were written, entries
// that were refused, and entries whose row was busy.
type outcome struct {
	done    map[int]*written
	refused []int
	busy    []int
}

// run runs the statement for the entries on r and sorts them by what came back.
func (s *Store) run(ctx context.Context, r runner, st guarded, guards []onereply.Guard, entries []int) (outcome, error) {
	o := outcome{done: make(map[int]*written)}
	rows := make(map[onereply.TaskID]*written, len(entries))
	present := make(map[onereply.TaskID]bool, len(entries))
	sort := func(scan func(...any) error) error {
		id, w, err := st.scan(scan)
		if err == nil {
			present[id] = true
			if w != nil {
				rows[id] = w
			}
		}
		return err
	}
	args := st.args(entries)
	var err error
	if st.behind == "" {
		err = s.do(ctx, r, st.name, sort, args...)
	} else if err = r.queryAfter(ctx, s.text[st.behind], args[0], s.text[st.name], args, sort); err != nil {
		err = fmt.Errorf("%s: %w", st.name, err)
	}
	if err != nil {
		return o, err
	}
	for _, i := range entries {
		g := guards[i]
		w := rows[g.Task]
		switch {
		case w != nil && w.version == g.Version && w.attempt == g.Attempt:
			o.done[i] = w
		case present[g.Task]:
			o.refused = append(o.refused, i)
		default:
			o.busy = append(o.busy, i)
		}
	}
	return o, nil
}

// inTurn runs the statement within a transaction: all entries at once, then
// those whose rows were busy one by one, each behind a lock that waits. An entry
// whose row is not there at all ends as refused.
func (s *Store) inTurn(ctx context.Context, t *Tx, st guarded, guards []onereply.Guard, entries []int) (outcome, error) {
	o, err := s.run(ctx, t, st, guards, entries)
	if err != nil {
		return o, err
	}
	busy := o.busy
	o.busy = nil
	for _, i := range busy {
		if err := s.do(ctx, t, "lock", nil, string(guards[i].Task)); err != nil {
			return o, err
		}
		one, err := s.run(ctx, t, st, guards, []int{i})
		if err != nil {
			return o, err
		}
		for k, w := range one.done {
			o.done[k] = w
		}
		o.refused = append(append(o.refused, one.refused...), one.busy...)
	}
	return o, nil
}

// waves splits entries so that no wave has two of the same task, in their order.
func waves(guards []onereply.Guard, entries []int) [][]int {
	var all [][]int
	depth := make(map[onereply.TaskID]int)
	for _, i := range entries {
		d := depth[guards[i].Task]
		depth[guards[i].Task]++
		if d == len(all) {
			all = append(all, nil)
		}
		all[d] = append(all[d], i)
	}
	return all
}

// guardArgs are the first three arrays of every guarded statement.
func guardArgs(guards []onereply.Guard, entries []int) (tasks []string, versions []int64, attempts []string) {
	for _, i := range entries {
		g := guards[i]
		tasks, versions, attempts = append(tasks, string(g.Task)), append(versions, g.Version), append(attempts, string(g.Attempt))
	}
	return tasks, versions, attempts
}

// scanGuard reads the three columns that every guarded statement begins with,
// and more after them.
func scanGuard(scan func(...any) error, more ...any) (onereply.TaskID, *written, error) {
	var id string
	var version sql.NullInt64
	var attempt sql.NullString
	if err := scan(append([]any{&id, &version, &attempt}, more...)...); err != nil {
		return "", nil, err
	}
	if !version.Valid {
		return onereply.TaskID(id), nil, nil
	}
	return onereply.TaskID(id), &written{version: version.Int64, attempt: onereply.AttemptID(attempt.String)}, nil
}

// late is what a refused entry leaves on its attempt.
type late struct {
	closed *store.ClosedCall
	ended  bool // the attempt is over: it gets the outcome fenced_out, unless it has one
	cause  *onereply.Failure
}

// refuse says why entries were refused and leaves the events that show it. It
// gives the tasks as they stand.
func (s *Store) refuse(ctx context.Context, r runner, guards []onereply.Guard, entries []int, of func(int) late) (map[int]*onereply.Refusal, map[int]*onereply.Task, error) {
	if len(entries) == 0 {
		return nil, nil, nil
	}
	tasks, versions, tried := guardArgs(guards, entries)
	n := len(entries)
	classes, codes, messages := make([]string, n), make([]string, n), make([]string, n)
	input, output, ended := make([]int64, n), make([]int64, n), make([]bool, n)
	for k, i := range entries {
		l := of(i)
		if l.closed != nil {
			classes[k] = string(l.closed.Class)
			input[k], output[k] = int64(l.closed.Usage.InputTokens), int64(l.closed.Usage.OutputTokens)
		}
		if ended[k] = l.ended; l.cause != nil {
			codes[k], messages[k] = l.cause.Code, l.cause.Message
		}
	}
	found := make(map[onereply.TaskID]*onereply.Task)
	err := s.do(ctx, r, "refused", func(scan func(...any) error) error {
		var row taskRow
		if err := scan(row.columns()...); err != nil {
			return err
		}
		t := row.task()
		found[t.ID] = &t
		return nil
	}, tasks, versions, tried, classes, input, output, ended, codes, messages)
	if err != nil {
		return nil, nil, fmt.Errorf("classifying %d refused writes: %w", n, err)
	}
	why := make(map[int]*onereply.Refusal, n)
	stands := make(map[int]*onereply.Task, n)
	for _, i := range entries {
		t := found[guards[i].Task]
		why[i] = onereply.Refuse(guards[i], t)
		stands[i] = t
	}
	return why, stands, nil
}
