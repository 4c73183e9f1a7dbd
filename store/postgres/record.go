package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Record implements store.Writer. Entries of one operation share a statement; a
// single operation without anything refused or busy is one round trip.
func (s *Store) Record(ctx context.Context, entries []store.Record) ([]store.Verdict, error) {
	if err := s.outside(ctx, "Record"); err != nil || len(entries) == 0 {
		return nil, err
	}
	guards := make([]onereply.Guard, len(entries))
	all := make([]int, len(entries))
	drafts := false
	for i, e := range entries {
		guards[i], all[i] = e.Guard, i
		drafts = drafts || e.Op == store.DraftText
		if e.Op < store.Renew || e.Op > store.Late {
			return nil, fmt.Errorf("%w: record op %d", onereply.ErrInvalid, e.Op)
		}
	}
	verdicts := make([]store.Verdict, len(entries))
	err := s.record(ctx, entries, guards, all, verdicts)
	if drafts {
		s.announce(ctx, false)
	}
	if err != nil {
		return nil, fault("record", err)
	}
	return verdicts, nil
}

func (s *Store) record(ctx context.Context, entries []store.Record, guards []onereply.Guard, all []int, verdicts []store.Verdict) error {
	st, same := s.sameOp(entries, guards)
	if !same || len(waves(guards, all)) > 1 {
		return s.transact(ctx, s.settings, func(t *Tx) error {
			for _, wave := range waves(guards, all) {
				if err := s.recordWave(ctx, t, entries, guards, wave, verdicts); err != nil {
					return err
				}
			}
			return nil
		})
	}
	// The common case: one statement, a transaction by itself.
	var o outcome
	err := s.alone(ctx, func(r runner) (err error) {
		if o, err = s.run(ctx, r, st, guards, all); err != nil {
			return err
		}
		return checkpointed(entries, o.done)
	})
	if err != nil {
		return err
	}
	take(entries, verdicts, o.done)
	if len(o.refused) > 0 {
		err = s.alone(ctx, func(r runner) error { return s.recordRefused(ctx, r, entries, guards, o.refused, verdicts) })
	}
	// Each busy row is waited for in a transaction of its own, so that it holds
	// nobody else, and its failure leaves the others as they are.
	for _, i := range o.busy {
		err = errors.Join(err, s.recordBusy(ctx, entries, guards, i, verdicts))
	}
	return err
}

// recordBusy carries out one entry whose row somebody else has locked. A renewal
// that cannot be made now says how long the lease is good for as it stands: the
// next one comes in time.
func (s *Store) recordBusy(ctx context.Context, entries []store.Record, guards []onereply.Guard, i int, verdicts []store.Verdict) error {
	err := s.transact(ctx, s.settings, func(t *Tx) error {
		return s.recordWave(ctx, t, entries, guards, []int{i}, verdicts)
	})
	if code, _ := state(err); code != lockNotAvailable || entries[i].Op != store.Renew {
		return err
	}
	g := guards[i]
	return s.do(ctx, s.db, "lease_left", func(scan func(...any) error) error {
		var left interval
		if e := scan(&left); e != nil {
			return e
		}
		verdicts[i], err = store.Verdict{LeaseFor: time.Duration(left)}, nil
		return nil
	}, string(g.Task), g.Version, string(g.Attempt))
}

// sameOp returns the statement where all entries are of one operation.
func (s *Store) sameOp(entries []store.Record, guards []onereply.Guard) (guarded, bool) {
	for _, e := range entries {
		if e.Op != entries[0].Op || e.Op == store.Late || e.Op == store.CountCall && e.Closed != nil {
			return guarded{}, false
		}
	}
	return statementOf(entries[0].Op, entries, guards), true
}

// recordWave carries out entries of different tasks, operation by operation. A
// count that closes an earlier call closes it first.
func (s *Store) recordWave(ctx context.Context, t *Tx, entries []store.Record, guards []onereply.Guard, wave []int, verdicts []store.Verdict) error {
	byOp := make(map[store.RecordOp][]int)
	var closing []int
	for _, i := range wave {
		byOp[entries[i].Op] = append(byOp[entries[i].Op], i)
		if entries[i].Op == store.CountCall && entries[i].Closed != nil {
			closing = append(closing, i)
		}
	}
	if len(closing) > 0 {
		if _, err := s.inTurn(ctx, t, statementOf(store.CloseCall, entries, guards), guards, closing); err != nil {
			return err
		}
	}
	refused := byOp[store.Late]
	for op := store.Renew; op < store.Late; op++ {
		if len(byOp[op]) == 0 {
			continue
		}
		o, err := s.inTurn(ctx, t, statementOf(op, entries, guards), guards, byOp[op])
		if err != nil {
			return err
		}
		if err := checkpointed(entries, o.done); err != nil {
			return err
		}
		take(entries, verdicts, o.done)
		refused = append(refused, o.refused...)
	}
	return s.recordRefused(ctx, t, entries, guards, refused, verdicts)
}

func (s *Store) recordRefused(ctx context.Context, r runner, entries []store.Record, guards []onereply.Guard, refused []int, verdicts []store.Verdict) error {
	why, _, err := s.refuse(ctx, r, guards, refused, func(i int) late {
		return late{closed: entries[i].Closed, ended: entries[i].Op == store.Late}
	})
	for i, r := range why {
		verdicts[i] = store.Verdict{Refused: r}
	}
	return err
}

// take fills the verdicts of the entries that were done.
func take(entries []store.Record, verdicts []store.Verdict, done map[int]*written) {
	for i, w := range done {
		switch entries[i].Op {
		case store.Renew:
			verdicts[i].LeaseFor = w.extra.(time.Duration)
		case store.CountCall:
			if verdicts[i].Call = w.extra.(int); verdicts[i].Call == 0 {
				verdicts[i].CallsExhausted = true
			}
		}
	}
}

// checkpointed refuses a checkpoint within a good assignment that has no open
// call: there is nothing to save it on, which is the caller's mistake.
func checkpointed(entries []store.Record, done map[int]*written) error {
	for i, w := range done {
		if saved, ok := w.extra.(bool); ok && !saved {
			return fmt.Errorf("%w: checkpoint of %s without an open call", onereply.ErrInvalid, entries[i].Guard)
		}
	}
	return nil
}

// statementOf is the guarded statement of an operation.
func statementOf(op store.RecordOp, entries []store.Record, guards []onereply.Guard) guarded {
	with := func(more func(e store.Record, first bool) []any) func([]int) []any {
		return func(chosen []int) []any {
			tasks, versions, tried := guardArgs(guards, chosen)
			args := []any{tasks, versions, tried}
			return append(args, columnsOf(entries, chosen, more)...)
		}
	}
	switch op {
	case store.Renew:
		return guarded{name: "renew", args: with(func(e store.Record, _ bool) []any { return []any{e.Lease} }), scan: scanRenew}
	case store.CountCall:
		return guarded{name: "count", args: with(func(store.Record, bool) []any { return nil }), scan: scanCount}
	case store.CloseCall:
		return guarded{name: "close", args: with(func(e store.Record, _ bool) []any { return closedArgs(e.Closed) }), scan: scanPlain}
	case store.Checkpoint:
		return guarded{name: "checkpoint", args: with(func(e store.Record, _ bool) []any { return []any{e.Operation} }), scan: scanCheckpoint}
	case store.DraftText:
		text := with(func(e store.Record, _ bool) []any { return []any{e.Seq, e.Text} })
		relaxed := !slices.ContainsFunc(entries, func(e store.Record) bool { return e.Op != store.DraftText })
		return guarded{name: "draft", args: func(chosen []int) []any { return append(text(chosen), relaxed) }, scan: scanDraft}
	default:
		return guarded{name: "progress", args: with(func(e store.Record, _ bool) []any { return []any{stateOf(e.State)} }), scan: scanPlain}
	}
}

func stateOf(state []byte) []byte {
	if state == nil {
		return []byte{}
	}
	return state
}

// closedArgs are the columns of a closed call; of none, a number that no call has.
func closedArgs(c *store.ClosedCall) []any {
	if c == nil {
		c = &store.ClosedCall{}
	}
	return []any{int32(c.Number), string(c.Class), c.Code, int32(c.Requests), int64(c.Usage.InputTokens), int64(c.Usage.OutputTokens)}
}

// columnsOf turns the rows that more gives into typed arrays, one a column.
func columnsOf[E any](entries []E, chosen []int, more func(e E, first bool) []any) []any {
	var columns []any
	for k, i := range chosen {
		for c, v := range more(entries[i], k == 0) {
			if k == 0 {
				columns = append(columns, nil)
			}
			columns[c] = grow(columns[c], v)
		}
	}
	return columns
}

// grow appends v to the array of its type.
func grow(array, v any) any {
	switch v := v.(type) {
	case string:
		return appendTo(array, storable(v))
	case int32:
		return appendTo(array, v)
	case int64:
		return appendTo(array, v)
	case bool:
		return appendTo(array, v)
	case time.Duration:
		return appendTo(array, v)
	case []byte:
		return appendTo(array, v)
	}
	panic(fmt.Sprintf("postgres: no array of %T", v))
}

// storable is text as PostgreSQL keeps it: what comes from providers may hold a
// NUL or bytes that are no UTF-8, and must not make an ending impossible.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

func appendTo[T any](array any, v T) []T {
	all, _ := array.([]T)
	return append(all, v)
}

func scanPlain(scan func(...any) error) (onereply.TaskID, *written, error) { return scanGuard(scan) }

func scanDraft(scan func(...any) error) (onereply.TaskID, *written, error) {
	var setting sql.NullString
	return scanGuard(scan, &setting)
}

func scanRenew(scan func(...any) error) (onereply.TaskID, *written, error) {
	var d interval
	id, w, err := scanGuard(scan, &d)
	if w != nil {
		w.extra = time.Duration(d)
	}
	return id, w, err
}

func scanCount(scan func(...any) error) (onereply.TaskID, *written, error) {
	var number sql.NullInt64
	id, w, err := scanGuard(scan, &number)
	if w != nil {
		w.extra = int(number.Int64)
	}
	return id, w, err
}

func scanCheckpoint(scan func(...any) error) (onereply.TaskID, *written, error) {
	var saved sql.NullString
	id, w, err := scanGuard(scan, &saved)
	if w != nil {
		w.extra = saved.Valid
	}
	return id, w, err
}
