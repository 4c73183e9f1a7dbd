package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Options configure a store. Zero members take the defaults named.
type Options struct {
	// Migrate makes the file where it is missing and brings its schema up to date
	// when the store opens. Without it Open fails where there is something to do.
	Migrate bool
	// Unmigrated opens the file without Migrate, missing and outdated ones too, for
	// a program that calls [Store.Migrate] itself. Nothing else works before that.
	Unmigrated bool
	// BusyTimeout is how long a transaction waits for another program that holds
	// the file; default 10 seconds. Callers' contexts end their own wait earlier.
	BusyTimeout time.Duration
	// Readers is how many connections may read at once; default 4, or the number
	// of processors if there are more.
	Readers int
	// WatchInterval is how often a Watch looks for commits of other processes;
	// default 40 milliseconds.
	WatchInterval time.Duration
	// Logger gets what no caller can be told; default slog.Default().
	Logger *slog.Logger

	// Now is the host's clock; default time.Now. For tests.
	Now func() time.Time
	// Elapsed is the monotonic time since some fixed moment, by which the store's
	// clock runs on while Now lags behind it; default the process's. For tests.
	Elapsed func() time.Duration
	// Faults, for tests, are called around every shared commit.
	Faults *Faults
}

// Faults are a seam for tests: an error, or the end of the process, at the two
// moments that matter. Either function may be nil.
type Faults struct {
	BeforeCommit func() error // an error rolls the shared transaction back
	AfterCommit  func() error // an error loses the commit's acknowledgement
}

func (f *Faults) beforeCommit() error {
	if f == nil || f.BeforeCommit == nil {
		return nil
	}
	return f.BeforeCommit()
}

func (f *Faults) afterCommit() error {
	if f == nil || f.AfterCommit == nil {
		return nil
	}
	return f.AfterCommit()
}

func (o Options) withDefaults() Options {
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 10 * time.Second
	}
	if o.Readers == 0 {
		o.Readers = max(4, runtime.NumCPU())
	}
	if o.WatchInterval == 0 {
		o.WatchInterval = 40 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Store is a store on one SQLite file. It is safe for concurrent use. Close it
// when nothing uses it any more.
type Store struct {
	path       string
	options    Options
	statements map[string]*statement
	migrations []Migration
	clock      *clock
	writer     *writer
	writes     *sql.DB // one connection, BEGIN IMMEDIATE
	reads      *sql.DB // cannot write
	watches    *sql.DB // cannot write; one connection a Watch
	watchers   watchers
	closed     atomic.Bool
}

var _ store.Store = (*Store)(nil)

// Open opens the file. One that is missing, or whose schema is not up to date,
// is made good if Options.Migrate says so and else refused: a store that opens
// can work. Errors that mean the file cannot be used now match
// onereply.ErrUnavailable and carry a hint. The context bounds the opening only.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	o = o.withDefaults()
	if path == "" {
		return nil, fmt.Errorf("%w: the path of the database is empty", onereply.ErrInvalid)
	}
	if err := checkPath(path); err != nil {
		return nil, unavailable("open "+path, err, "check that the directory exists and that this user may write to it")
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && !o.Migrate && !o.Unmigrated {
		return nil, unavailable("open "+path, err, migrateHint)
	}
	statements, err := loadStatements()
	if err != nil {
		return nil, err
	}
	migrations, err := loadMigrations()
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, options: o, statements: statements, migrations: migrations,
		clock: newClock(o.Now, o.Elapsed),
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.writer = &writer{s: s, base: base, stop: stop, busy: make(chan struct{}, 1)}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fault("open "+path, err), s.Close())
	}
	if err := s.checkSchema(ctx); err != nil {
		return nil, errors.Join(fault("open "+path, err), s.Close())
	}
	return s, nil
}

const migrateHint = "open it with Options.Migrate, or run: onereply migrate up"

// checkPath finds what SQLite would report only as "unable to open".
func checkPath(path string) error {
	switch info, err := os.Stat(filepath.Dir(path)); {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", filepath.Dir(path))
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	}
	return nil
}

// connect opens the two pools.
func (s *Store) connect(ctx context.Context) error {
	o := s.options
	writes, err := newConnector(s.path, true, o.BusyTimeout, s.writer.noteBusy,
		"PRAGMA busy_timeout = 0", "PRAGMA foreign_keys = ON", "PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = FULL", "PRAGMA cache_size = -8000", "PRAGMA temp_store = MEMORY",
		"PRAGMA journal_size_limit = 67108864")
	if err != nil {
		return err
	}
	s.writes = sql.OpenDB(writes)
	s.writes.SetMaxOpenConns(1)
	s.writes.SetMaxIdleConns(1)
	reads, err := newConnector(s.path, false, o.BusyTimeout, func() {},
		"PRAGMA busy_timeout = 0", "PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY")
	if err != nil {
		return err
	}
	s.reads = sql.OpenDB(reads)
	s.reads.SetMaxOpenConns(o.Readers)
	s.reads.SetMaxIdleConns(o.Readers)
	s.watches = sql.OpenDB(reads)
	s.watches.SetMaxIdleConns(1)
	// The first transaction tells at once whether the file can be written. It has
	// to write for that: on a file that may only be read, BEGIN IMMEDIATE quietly
	// begins a transaction that reads.
	tx, err := s.writes.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "PRAGMA user_version = 0")
	return errors.Join(err, undo(tx))
}

// Close waits for the transactions that wait already, ends watches, and closes
// the file. It may be called twice.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.writer.close()
	s.watchers.close()
	var faults []error
	for _, pool := range []*sql.DB{s.watches, s.reads, s.writes} {
		if pool != nil {
			faults = append(faults, pool.Close())
		}
	}
	return errors.Join(faults...)
}

type inside struct{}

// shared runs f in a shared transaction.
func (s *Store) shared(ctx context.Context, op string, l lane, f func(context.Context, *Tx) error) error {
	if ctx.Value(inside{}) != nil {
		return fmt.Errorf("%w: %s inside InTx would wait for itself", onereply.ErrInvalid, op)
	}
	within := context.WithValue(ctx, inside{}, true)
	return s.writer.do(ctx, l, func(tx *Tx) error { return f(within, tx) })
}

// InTx implements store.Writer: f runs in a savepoint of a transaction that
// concurrent callers share.
func (s *Store) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	return s.shared(ctx, "InTx", normal, func(ctx context.Context, tx *Tx) error { return f(ctx, tx) })
}
