package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

func TestAnOlderProgramRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	s := open(t, path, sqlite.Options{})
	if err := s.Exec(t.Context(), "INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, '0099_later', 1)"); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	var own *onereply.Error
	if !errors.As(err, &own) || !strings.Contains(err.Error(), "0099_later") || own.Hint == "" {
		t.Errorf("opening a newer schema: %v", err)
	}
}

// A store that opens can work: what has no schema yet is refused with a remedy,
// and no empty file is left where there was none.
func TestAFileWithoutItsSchemaIsRefusedUnlessItIsToBeMigrated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing, empty, half := filepath.Join(dir, "missing.db"), filepath.Join(dir, "empty.db"), filepath.Join(dir, "half.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, half, sqlite.Options{})
	last, err := s.MigrationStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(t.Context(), fmt.Sprintf("DELETE FROM schema_migrations WHERE version = %d", len(last))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{missing: "no such file", empty: last[0].Name + " is not applied", half: last[len(last)-1].Name + " is not applied"} {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err == nil {
			t.Fatal(errors.Join(fmt.Errorf("%s opened", path), s.Close()))
		}
		unavailable(t, path, err)
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "onereply migrate up") || !strings.Contains(err.Error(), path) {
			t.Errorf("%v", err)
		}
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made the file: %v", err)
	}
}

func TestMigrateTwiceAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	var handles [3]*sqlite.Store
	for i := range handles {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{Unmigrated: true})
		if err != nil {
			t.Fatal(err)
		}
		handles[i] = s
	}
	before, err := handles[0].MigrationStatus(t.Context())
	if err != nil || len(before) == 0 || !before[0].AppliedAt.IsZero() {
		t.Fatalf("status of an empty file: %+v, %v", before, err)
	}
	var callers sync.WaitGroup
	for _, s := range handles {
		callers.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	after, err := handles[1].MigrationStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script, err := sqlite.MigrationSQL()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range after {
		if m.AppliedAt.IsZero() || !strings.Contains(script, strings.TrimSpace(m.SQL)) {
			t.Errorf("migration %s: applied at %v", m.Name, m.AppliedAt)
		}
	}
	for _, s := range handles {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAUsersOwnTransaction(t *testing.T) {
	t.Parallel()
	path, ids := filepath.Join(t.TempDir(), "test.db"), onereply.NewIDs()
	s := open(t, path, sqlite.Options{})
	own, err := sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	}()
	begin := map[string]func() (*sql.Tx, error){
		"begun with the store":       func() (*sql.Tx, error) { return s.Begin(t.Context()) },
		"on the user's own handle":   func() (*sql.Tx, error) { return own.BeginTx(t.Context(), nil) },
		"begun with the store again": func() (*sql.Tx, error) { return s.Begin(t.Context()) },
	}
	for name, open := range begin {
		for _, commit := range []bool{true, false} {
			tx, err := open()
			if err != nil {
				t.Fatal(err)
			}
			e := submission(ids)
			v, err := s.Submit(t.Context(), sqlite.Wrap(tx), []store.Submission{e})
			if err != nil || v[0].Verdict != store.Created {
				t.Fatalf("%s: %+v, %v", name, v, err)
			}
			end := tx.Rollback
			if commit {
				end = tx.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			tasks, err := s.Tasks(t.Context(), store.Query{IDs: []onereply.TaskID{e.ID}})
			if err != nil || (len(tasks) == 1) != commit {
				t.Errorf("%s, committed %v: %d tasks, %v", name, commit, len(tasks), err)
			}
		}
	}
}

type foreignTx struct{}

func (foreignTx) TxDriver() string { return "other" }

func TestAnotherStoresTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	if _, err := s.Submit(t.Context(), foreignTx{}, nil); !errors.Is(err, onereply.ErrInvalid) {
		t.Errorf("submit: %v, want an error matching ErrInvalid", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Unwrap of another store's transaction did not panic")
		}
	}()
	sqlite.Unwrap(foreignTx{})
}

func TestCloseFinishesWhatWaitsAndRefusesWhatComesLater(t *testing.T) {
	t.Parallel()
	ids := onereply.NewIDs()
	s := open(t, filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	watched := make(chan error, 1)
	go func() { watched <- s.Watch(t.Context(), func() {}) }()
	inside, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
			close(inside)
			<-goOn
			_, err := s.Submit(ctx, tx, []store.Submission{submission(ids)})
			return err
		})
	}()
	<-inside
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	close(goOn)
	if err := errors.Join(<-done, <-closed); err != nil {
		t.Error(err)
	}
	if err := <-watched; err != nil && !errors.Is(err, onereply.ErrClosed) {
		t.Errorf("the watch: %v", err)
	}
	if _, err := submit(t.Context(), s, submission(ids)); !errors.Is(err, onereply.ErrClosed) {
		t.Errorf("a submit afterwards: %v", err)
	}
	if _, err := s.Tasks(t.Context(), store.Query{}); !errors.Is(err, onereply.ErrClosed) {
		t.Errorf("a read afterwards: %v", err)
	}
}

// Drafts alone commit without waiting for the disk; everything after them waits
// again.
func TestDraftsLeaveDurabilityAsItWas(t *testing.T) {
	t.Parallel()
	s, a := running(t)
	mode := func() (n int) {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tx.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&n), tx.Rollback()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const full = 2
	if got := mode(); got != full {
		t.Errorf("synchronous is %d at first, want %d", got, full)
	}
	for seq := range int64(3) {
		v, err := s.Record(t.Context(), []store.Record{{Guard: a.Guard, Op: store.DraftText, Seq: seq + 1, Text: "x"}})
		if err != nil || v[0].Refused != nil {
			t.Fatalf("draft: %+v, %v", v, err)
		}
		if got := mode(); got != full {
			t.Errorf("synchronous is %d after a draft, want %d", got, full)
		}
	}
}

// A store with nothing to do writes nothing: polls, purges and empty claims
// leave the file as it is.
func TestIdleWritesNothing(t *testing.T) {
	t.Parallel()
	path, ids := filepath.Join(t.TempDir(), "test.db"), onereply.NewIDs()
	s := open(t, path, sqlite.Options{})
	if _, err := submit(t.Context(), s, submission(ids)); err != nil {
		t.Fatal(err)
	}
	if a, err := claim(t.Context(), s, ids, "w1"); err != nil || len(a) != 1 {
		t.Fatalf("claim: %v, %v", a, err)
	}
	wal := func() string {
		raw, err := os.ReadFile(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	before := wal()
	for range 3 {
		if a, err := claim(t.Context(), s, ids, "w2"); err != nil || len(a) != 0 {
			t.Fatalf("claim: %v, %v", a, err)
		}
		if _, err := s.Due(t.Context(), []string{"reply"}); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Purge(t.Context(), store.Purge{Limit: 10}); err != nil || p != (store.Purged{}) {
			t.Fatalf("purge: %+v, %v", p, err)
		}
		if _, err := s.Stats(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if wal() != before {
		t.Error("an idle store wrote to its file")
	}
}
