package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

const benchCallers = 16

// BenchmarkSubmit is durable submissions of 16 callers, one transaction each.
// Compare with BenchmarkPlainGroupedSubmit: the same rows in the same schema,
// in plain SQL, sixteen a commit.
func BenchmarkSubmit(b *testing.B) {
	s, ids := open(b, filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{}), onereply.NewIDs()
	work(b, func() error {
		_, err := submit(b.Context(), s, submission(ids))
		return err
	})
}

// work spreads b.N calls over the callers.
func work(b *testing.B, f func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var callers sync.WaitGroup
	b.ResetTimer()
	for range benchCallers {
		callers.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
}

// BenchmarkPlainGroupedSubmit is the limit: no idempotency answer, no hooks, no
// savepoints, one caller with prepared statements and a commit every 16.
func BenchmarkPlainGroupedSubmit(b *testing.B) {
	path, ids := filepath.Join(b.TempDir(), "bench.db"), onereply.NewIDs()
	open(b, path, sqlite.Options{})
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=foreign_keys(1)&_pragma=synchronous(2)")
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	}()
	db.SetMaxOpenConns(1)
	texts, err := sqlite.Statements()
	if err != nil {
		b.Fatal(err)
	}
	insert := func(name string) *sql.Stmt {
		st, err := db.PrepareContext(b.Context(), texts[name])
		if err != nil {
			b.Fatal(err)
		}
		return st
	}
	key, task, input := insert("submit_key"), insert("submit_task"), insert("submit_input")
	b.ResetTimer()
	for done := 0; done < b.N; {
		tx, err := db.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		key, task, input := tx.Stmt(key), tx.Stmt(task), tx.Stmt(input)
		for i := 0; i < benchCallers && done < b.N; i++ {
			e, now := submission(ids), time.Now().UnixMilli()
			if err := plainRows(b.Context(), key, task, input, e, now); err != nil {
				b.Fatal(err)
			}
			done++
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
}

func plainRows(ctx context.Context, key, task, input *sql.Stmt, e store.Submission, now int64) error {
	if _, err := key.ExecContext(ctx, e.Scope, e.Action, e.Key, e.Fingerprint, string(e.ID), nil, now, now+3600000); err != nil {
		return err
	}
	if _, err := task.ExecContext(ctx, string(e.ID), e.Kind, e.Scope, now, now, e.Attempts, e.Calls, e.Elapsed.Milliseconds(), now, 0,
		string(e.Rules.OnUnknown), string(e.Rules.Acceptance)); err != nil {
		return err
	}
	_, err := input.ExecContext(ctx, string(e.ID), e.Action, e.Key, string(e.Input))
	return err
}

// BenchmarkWholeLife is submit, claim and accept of no-op tasks, 16 callers.
func BenchmarkWholeLife(b *testing.B) {
	s, ids := open(b, filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{}), onereply.NewIDs()
	ctx := b.Context()
	work(b, func() error {
		v, err := submit(ctx, s, submission(ids))
		if err != nil {
			return err
		}
		c, err := s.Claim(ctx, store.Claim{Worker: "w", Lease: time.Minute, Kinds: []string{"reply"}, Limit: 1,
			IDs: []onereply.TaskID{v.Task.ID}, NewAttempt: ids.NewAttempt})
		if err != nil {
			return err
		}
		return s.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
			_, err := s.Finish(ctx, tx, []store.Ending{{Guard: c.Assignments[0].Guard, Op: store.Accept,
				Outcome: onereply.OutcomeAccepted, Response: []byte(`{"text":"hi"}`)}})
			return err
		})
	})
}

// BenchmarkDue is the poll of an idle worker.
func BenchmarkDue(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{})
	for b.Loop() {
		if _, err := s.Due(b.Context(), []string{"reply", "index", "notify"}); err != nil {
			b.Fatal(err)
		}
	}
}
