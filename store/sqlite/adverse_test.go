package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

// unavailable insists on an operator's error with a hint.
func unavailable(t *testing.T, what string, err error) {
	t.Helper()
	var own *onereply.Error
	switch {
	case !errors.Is(err, onereply.ErrUnavailable):
		t.Errorf("%s: %v, want an error matching ErrUnavailable", what, err)
	case errors.Is(err, onereply.ErrCommitUnknown):
		t.Errorf("%s: %v, although it is certain that nothing was written", what, err)
	case !errors.As(err, &own) || own.Op == "" || own.Hint == "":
		t.Errorf("%s: %v, want an operation and a hint", what, err)
	}
}

func TestOpenOfWhatCannotBeOpenedSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, path := range map[string]string{
		"a text":                  write("notes.txt", []byte(strings.Repeat("these are no tables\n", 500))),
		"a cut header":            write("cut.db", []byte("SQLite format 3\x00\x10\x00")),
		"a damaged database":      damaged(t, filepath.Join(dir, "damaged.db")),
		"a directory":             dir,
		"in a missing directory":  filepath.Join(dir, "missing", "x.db"),
		"in a file":               filepath.Join(write("file", nil), "x.db"),
		"where nobody may create": "/proc/onereply-test.db",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it opened"), s.Close()))
			}
			unavailable(t, name, err)
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the file", err)
			}
		})
	}
	if _, err := sqlite.Open(t.Context(), "", sqlite.Options{}); !errors.Is(err, onereply.ErrInvalid) {
		t.Errorf("an empty path: %v", err)
	}
}

// damaged is a database whose pages, but for the header, are noise.
func damaged(t *testing.T, path string) string {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 100; i < len(raw); i++ {
		raw[i] = byte(i * 7)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const readOnlyEnv = "ONEREPLY_TEST_READ_ONLY_FILE"

// TestReadOnly runs itself again as a user without rights where it runs as
// root, whom no permission stops.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(readOnlyEnv); path != "" {
		openReadOnly(t, path)
		return
	}
	dir, err := os.MkdirTemp("", "onereply-read-only")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chmod(dir, 0o700), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "test.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.Chmod(path, 0o444), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		openReadOnly(t, path)
		return
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skipf("running as root, and the test binary cannot be copied for another user: %v", err)
	}
	binary := filepath.Join(t.TempDir(), "sqlite.test")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for up := filepath.Dir(binary); len(up) > len(os.TempDir()); up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^TestReadOnly$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), readOnlyEnv+"="+path), os.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestReadOnly") {
		t.Fatalf("as another user: %v\n%s", err, out)
	}
}

func openReadOnly(t *testing.T, path string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil {
		t.Fatal(errors.Join(errors.New("a read-only file opened"), s.Close()))
	}
	unavailable(t, "a read-only file", err)
	_, err = sqlite.Open(t.Context(), filepath.Join(filepath.Dir(path), "new.db"), sqlite.Options{Migrate: true})
	unavailable(t, "a new file in a read-only directory", err)
}

// holdLock takes the file's write lock as another program would.
func holdLock(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestDatabaseLockedByAnotherProgram(t *testing.T) {
	t.Parallel()
	path, ids := filepath.Join(t.TempDir(), "test.db"), onereply.NewIDs()
	s := open(t, path, sqlite.Options{BusyTimeout: 100 * time.Millisecond})
	patient := open(t, path, sqlite.Options{BusyTimeout: time.Minute})
	release := holdLock(t, path)
	defer release()

	_, err := submit(t.Context(), s, submission(ids))
	unavailable(t, "a submit that waited long enough", err)
	ctx, cancel := context.WithCancel(t.Context())
	hungUp := make(chan error, 1)
	go func() {
		_, err := submit(ctx, patient, submission(ids))
		hungUp <- err
	}()
	cancel()
	if err := <-hungUp; !errors.Is(err, context.Canceled) {
		t.Errorf("a submit whose caller hung up: %v", err)
	}
	if due, err := s.Due(t.Context(), []string{"reply"}); err != nil || due.Now {
		t.Errorf("a reader meanwhile: %+v, %v", due, err)
	}
	kept := submission(ids)
	waited := make(chan error, 1)
	go func() {
		_, err := submit(t.Context(), patient, kept)
		waited <- err
	}()
	release()
	if err := <-waited; err != nil {
		t.Errorf("a submit that waited for the lock: %v", err)
	}
	if _, err := submit(t.Context(), s, submission(ids)); err != nil {
		t.Errorf("a submit afterwards: %v", err)
	}
	tasks, err := s.Tasks(t.Context(), store.Query{})
	if err != nil || len(tasks) != 2 {
		t.Errorf("%d tasks, %v; want the two that were acknowledged", len(tasks), err)
	}
}

func TestFullDiskLosesNothingAndHeals(t *testing.T) {
	t.Parallel()
	ids := onereply.NewIDs()
	s := open(t, filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	if err := s.LimitPages(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acknowledged := map[onereply.TaskID]bool{}
	var full atomic.Bool
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 200 {
				e := submission(ids)
				e.Input = []byte(`"` + strings.Repeat("x", 2000) + `"`)
				v, err := submit(t.Context(), s, e)
				if err != nil {
					unavailable(t, "a submit on a full disk", err)
					full.Store(true)
					return
				}
				mu.Lock()
				acknowledged[v.Task.ID] = true
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	if !full.Load() || len(acknowledged) == 0 {
		t.Fatalf("the disk never filled up after %d tasks", len(acknowledged))
	}
	there := func() map[onereply.TaskID]bool {
		tasks, err := s.Tasks(t.Context(), store.Query{Whole: true})
		if err != nil {
			t.Fatal(err)
		}
		ids := map[onereply.TaskID]bool{}
		for _, task := range tasks {
			ids[task.ID] = len(task.Input) == 2002
		}
		return ids
	}
	if got := there(); fmt.Sprint(got) != fmt.Sprint(acknowledged) {
		t.Errorf("%d tasks are there, %d were acknowledged", len(got), len(acknowledged))
	}
	if err := s.LimitPages(t.Context(), 1<<30); err != nil {
		t.Fatal(err)
	}
	v, err := submit(t.Context(), s, submission(ids))
	if err != nil {
		t.Fatalf("once there is room: %v", err)
	}
	if got := there(); len(got) != len(acknowledged)+1 {
		t.Errorf("%d tasks once there is room, want %d; the new one is %s", len(got), len(acknowledged)+1, v.Task.ID)
	}
}

// A hook that makes SQLite roll everything back undoes its neighbours, who are
// told that certainly nothing was written.
func TestNeighboursOfALostTransactionAreToldSo(t *testing.T) {
	t.Parallel()
	ids := onereply.NewIDs()
	s := open(t, filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	const n = 16
	errs := make([]error, n)
	created := make([]onereply.TaskID, n)
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			e := submission(ids)
			created[i] = e.ID
			errs[i] = s.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
				if _, err := s.Submit(ctx, tx, []store.Submission{e}); err != nil {
					return err
				}
				if i == 3 {
					// What SQLite does by itself when it runs out of room or memory.
					_, err := sqlite.Unwrap(tx).ExecContext(ctx, "ROLLBACK")
					return err
				}
				return nil
			})
		})
	}
	callers.Wait()
	tasks, err := s.Tasks(t.Context(), store.Query{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[onereply.TaskID]bool{}
	for _, task := range tasks {
		there[task.ID] = true
	}
	for i, err := range errs {
		if (err == nil) != there[created[i]] {
			t.Errorf("caller %d was told %v; its task is there: %v", i, err, there[created[i]])
		}
		if err != nil {
			unavailable(t, "a neighbour", err)
		}
	}
	if _, err := submit(t.Context(), s, submission(ids)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
