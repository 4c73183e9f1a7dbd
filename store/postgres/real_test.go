package postgres_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/postgres"
)

// site is a store in a schema of its own on the server's real clock, for what
// needs two connections that wait for each other.
type site struct {
	testing.TB
	schema string
	store  *postgres.Store
	pool   *pgxpool.Pool // the store's
	other  *pgxpool.Pool // of somebody else
	ids    *onereply.IDs
}

// newSite opens a store whose connections have the settings given, as a URL
// takes them.
func newSite(t testing.TB, settings string, o postgres.Options) *site {
	t.Helper()
	schema := freshSchema()
	s := &site{TB: t, schema: schema, ids: onereply.NewIDs(), other: pool(t, config(t, ""))}
	s.pool = pool(t, config(t, "&application_name="+schema+settings))
	o.Schema = schema
	var err error
	if s.store, err = postgres.New(s.pool, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.must(s.store.Close()) })
	s.must(s.store.Migrate(t.Context()))
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) exec(text string, args ...any) {
	s.Helper()
	_, err := s.other.Exec(s.Context(), text, args...)
	s.must(err)
}

func (s *site) scan(to any, text string, args ...any) {
	s.Helper()
	s.must(s.other.QueryRow(s.Context(), text, args...).Scan(to))
}

// until asks the server every few milliseconds until it says yes.
func (s *site) until(what, question string, args ...any) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	for yes := false; !yes; {
		if err := s.other.QueryRow(ctx, "SELECT coalesce(("+question+"), false) FROM pg_sleep(0.003)", args...).Scan(&yes); err != nil {
			s.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// untilBlocked waits until n of the store's connections wait for a lock.
func (s *site) untilBlocked(n int) {
	s.Helper()
	s.until("a lock is waited for", `SELECT count(*) >= $2 FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, s.schema, n)
}

// untilOver waits until the task's lease is over by the server's clock.
func (s *site) untilOver(id onereply.TaskID) {
	s.Helper()
	s.until("the lease is over", "SELECT lease_until <= clock_timestamp() FROM "+s.schema+".tasks WHERE id = $1", string(id))
}

// holding begins a transaction of somebody else that has run a statement.
func (s *site) holding(text string, args ...any) pgx.Tx {
	s.Helper()
	tx, err := s.other.Begin(s.Context())
	s.must(err)
	s.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(s.Context())) }) // ended already, as a rule
	_, err = tx.Exec(s.Context(), text, args...)
	s.must(err)
	return tx
}

func (s *site) submission(key string) store.Submission {
	return store.Submission{
		Scope: "w", Action: "reply", Key: key, Fingerprint: []byte("f"), KeyRetention: time.Hour,
		ID: onereply.TaskID(s.ids.New()), Kind: "reply", Input: json.RawMessage(`{"text":"hello"}`),
		Rules:    onereply.Rules{OnUnknown: onereply.UnknownRetry, Acceptance: onereply.CurrentAssignment},
		Attempts: 3, Calls: 5, Elapsed: time.Hour,
	}
}

func (s *site) submit(entries ...store.Submission) (v []store.Submitted, err error) {
	err = s.store.InTx(s.Context(), func(ctx context.Context, tx onereply.Tx) error {
		v, err = s.store.Submit(ctx, tx, entries)
		return err
	})
	return v, err
}

// running submits and claims a task, with a call open.
func (s *site) running(lease time.Duration) store.Assignment {
	s.Helper()
	sub := s.submission(s.ids.New())
	_, err := s.submit(sub)
	s.must(err)
	c, err := s.claim(lease, sub.ID)
	s.must(err)
	if len(c.Assignments) != 1 {
		s.Fatalf("claimed %d", len(c.Assignments))
	}
	a := c.Assignments[0]
	_, err = s.store.Record(s.Context(), []store.Record{{Guard: a.Guard, Op: store.CountCall}})
	s.must(err)
	return a
}

func (s *site) claim(lease time.Duration, ids ...onereply.TaskID) (store.Claimed, error) {
	c := claimOne(s)
	c.Lease, c.IDs = lease, ids
	return s.store.Claim(s.Context(), c)
}

func claimOne(s *site) store.Claim {
	return store.Claim{Worker: "w1", Lease: time.Hour, Kinds: []string{"reply"}, Limit: 100, NewAttempt: s.ids.NewAttempt}
}

func (s *site) finish(entries ...store.Ending) (v []store.Verdict, err error) {
	err = s.store.InTx(s.Context(), func(ctx context.Context, tx onereply.Tx) error {
		v, err = s.store.Finish(ctx, tx, entries)
		return err
	})
	return v, err
}

func (s *site) task(id onereply.TaskID) onereply.Task {
	s.Helper()
	all, err := s.store.Tasks(s.Context(), store.Query{IDs: []onereply.TaskID{id}, Whole: true})
	s.must(err)
	if len(all) != 1 {
		s.Fatalf("task %s: %d found", id, len(all))
	}
	return all[0]
}

func accepting(g onereply.Guard) store.Ending {
	return store.Ending{Guard: g, Op: store.Accept, Outcome: onereply.OutcomeAccepted, Response: json.RawMessage(`{"text":"late"}`)}
}

// write is a guarded write and how to make it.
type write struct {
	name string
	do   func(s *site, g onereply.Guard) (store.Verdict, error)
}

// writes lists every guarded write there is.
func writes() (all []write) {
	for _, r := range []struct {
		name string
		r    store.Record
	}{
		{"renew", store.Record{Op: store.Renew, Lease: time.Hour}},
		{"count", store.Record{Op: store.CountCall}},
		{"close", store.Record{Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1, Class: onereply.ClassAnswered}}},
		{"checkpoint", store.Record{Op: store.Checkpoint, Operation: "resp_1"}},
		{"draft", store.Record{Op: store.DraftText, Seq: 1, Text: "x"}},
		{"progress", store.Record{Op: store.Progress, State: []byte("x")}},
	} {
		all = append(all, write{r.name, func(s *site, g onereply.Guard) (store.Verdict, error) {
			r.r.Guard = g
			v, err := s.store.Record(s.Context(), []store.Record{r.r})
			if err != nil {
				return store.Verdict{}, err
			}
			return v[0], nil
		}})
	}
	for _, e := range []struct {
		name string
		e    store.Ending
	}{
		{"accept", accepting(onereply.Guard{})},
		{"fail", store.Ending{Op: store.Fail, Outcome: onereply.OutcomeFailed, Reason: onereply.ReasonPermanent}},
		{"retry", store.Ending{Op: store.Retry, Outcome: onereply.OutcomeRetried}},
		{"release", store.Ending{Op: store.Release, Outcome: onereply.OutcomeInterrupted}},
	} {
		all = append(all, write{e.name, func(s *site, g onereply.Guard) (store.Verdict, error) {
			e.e.Guard = g
			v, err := s.finish(e.e)
			if err != nil {
				return store.Verdict{}, err
			}
			return v[0], nil
		}})
	}
	return all
}
