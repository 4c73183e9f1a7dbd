package sqlite_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

func submission(ids *onereply.IDs) store.Submission {
	id := ids.New()
	return store.Submission{
		Scope: "w", Action: "reply", Key: id, Fingerprint: []byte("f"), KeyRetention: time.Hour, ID: onereply.TaskID(id),
		Kind: "reply", Input: json.RawMessage(`{"text":"hello"}`), Attempts: 5, Calls: 3, Elapsed: 15 * time.Minute,
		Rules: onereply.Rules{OnUnknown: onereply.UnknownRetry, Acceptance: onereply.CurrentAssignment},
	}
}

func submit(ctx context.Context, s *sqlite.Store, e store.Submission) (v store.Submitted, err error) {
	err = s.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
		all, err := s.Submit(ctx, tx, []store.Submission{e})
		if err == nil {
			v = all[0]
		}
		return err
	})
	return v, err
}

func claim(ctx context.Context, s *sqlite.Store, ids *onereply.IDs, worker string) ([]store.Assignment, error) {
	c, err := s.Claim(ctx, store.Claim{Worker: worker, Lease: 30 * time.Second, Kinds: []string{"reply"}, Limit: 10, NewAttempt: ids.NewAttempt})
	return c.Assignments, err
}

// running is a store with one task and its assignment.
func running(t *testing.T) (*sqlite.Store, store.Assignment) {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	ids := onereply.NewIDs()
	if _, err := submit(t.Context(), s, submission(ids)); err != nil {
		t.Fatal(err)
	}
	a, err := claim(t.Context(), s, ids, "w1")
	if err != nil || len(a) != 1 {
		t.Fatalf("claim: %v, %v", a, err)
	}
	return s, a[0]
}

func finish(t *testing.T, s *sqlite.Store, e store.Ending) (v store.Verdict) {
	t.Helper()
	err := s.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
		all, err := s.Finish(ctx, tx, []store.Ending{e})
		if err == nil {
			v = all[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// contextWithStop ends when stop is closed.
func contextWithStop(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
