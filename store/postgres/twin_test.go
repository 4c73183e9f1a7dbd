package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jackc/pgx/v5"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/postgres"
)

func TestASubmissionThatWaitsForItsTwin(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"", "&default_transaction_isolation=repeatable%20read", "&default_transaction_isolation=serializable"} {
		for end, want := range map[string]store.SubmitVerdict{"commits": store.Existing, "rolls back": store.Created} {
			t.Run("that "+end+isolation, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, isolation, postgres.Options{LockTimeout: 30 * time.Second})
				first, second := s.submission("k"), s.submission("k")
				tx, err := s.other.Begin(t.Context())
				s.must(err)
				_, err = s.store.Submit(t.Context(), postgres.Wrap(tx), []store.Submission{first})
				s.must(err)
				var v []store.Submitted
				done := make(chan error)
				go func() {
					var err error
					v, err = s.submit(second, s.submission("another"))
					done <- err
				}()
				s.untilBlocked(1)
				if end == "commits" {
					s.must(tx.Commit(t.Context()))
				} else {
					s.must(tx.Rollback(t.Context()))
				}
				s.must(<-done)
				id := map[store.SubmitVerdict]onereply.TaskID{store.Existing: first.ID, store.Created: second.ID}[want]
				if v[0].Verdict != want || v[0].Task.ID != id || v[1].Verdict != store.Created {
					t.Errorf("the waiter got %+v, want verdict %d of task %s", v[0], want, id)
				}
			})
		}
	}
}

// replies is a kind that does nothing but answer.
func replies() onereply.Kind { return onereply.Kind{Name: "reply"} }

func (s *site) engine(kinds ...onereply.Kind) *engine.Engine {
	s.Helper()
	e, err := engine.New(engine.Options{Store: s.store, Kinds: kinds, Workers: 8, Lease: time.Second, Sweep: -1})
	s.must(err)
	return e
}

func press(key string) onereply.Submission {
	return onereply.Submission{Scope: "w", Action: "reply", Key: key, Kind: "reply", Input: []byte(`{}`), Fingerprint: []byte("f")}
}

// submitAll presses every key at once.
func submitAll(s *site, e *engine.Engine, keys []string) []error {
	errs := make([]error, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		wg.Go(func() { _, errs[i] = e.Submit(s.Context(), press(key)) })
	}
	wg.Wait()
	return errs
}

func TestATwinInALongTransactionHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{LockTimeout: 60 * time.Millisecond})
	e := s.engine(replies())
	tx, err := s.other.Begin(t.Context())
	s.must(err)
	if _, err = e.SubmitTx(t.Context(), postgres.Wrap(tx), press("twin")); err != nil {
		t.Fatal(err)
	}
	keys := []string{"twin"}
	for i := range 20 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	for i, err := range submitAll(s, e, keys) { // while the transaction stays open
		if i == 0 && !errors.Is(err, onereply.ErrUnavailable) {
			t.Errorf("the twin: %v, want an error matching ErrUnavailable", err)
		}
		if i > 0 && err != nil {
			t.Errorf("key %s: %v", keys[i], err)
		}
	}
	s.must(tx.Commit(t.Context()))
	got, err := e.Submit(t.Context(), press("twin"))
	if err != nil || got.Created {
		t.Errorf("the twin afterwards: %+v, %v", got, err)
	}
}

func TestOneBadRowPoisonsNoBatch(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	e := s.engine(replies())
	var keys []string
	for i := range 60 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	keys[31] = "bad\xff" // no UTF-8: the server refuses the whole statement
	for i, err := range submitAll(s, e, keys) {
		if i == 31 && !errors.Is(err, onereply.ErrInvalid) {
			t.Errorf("the bad one: %v, want an error matching ErrInvalid", err)
		}
		if i != 31 && err != nil {
			t.Errorf("key %s: %v", keys[i], err)
		}
	}
	var n int
	s.scan(&n, "SELECT count(*) FROM "+s.schema+".tasks")
	if n != 59 {
		t.Errorf("%d tasks, want 59", n)
	}
}

func TestAStricterTransactionOfTheCallerIsToldToRetry(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	tx, err := s.other.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
	s.must(err)
	var n int
	s.must(tx.QueryRow(t.Context(), "SELECT count(*) FROM "+s.schema+".tasks").Scan(&n)) // its snapshot
	_, err = s.submit(s.submission("k"))
	s.must(err)
	_, err = s.store.Submit(t.Context(), postgres.Wrap(tx), []store.Submission{s.submission("k")})
	var refused *pgconn.PgError
	var said *onereply.Error
	if !errors.As(err, &refused) || refused.Code != "40001" || !errors.As(err, &said) || said.Hint != "retry your transaction" {
		t.Errorf("submit in a serializable transaction behind a twin: %v, want 40001 with the hint to retry", err)
	}
	s.must(tx.Rollback(t.Context()))
}
