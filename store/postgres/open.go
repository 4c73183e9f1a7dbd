package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Options configure a store. Zero members take the defaults named.
type Options struct {
	// Schema holds the tables; default "onereply". Migrate creates it.
	Schema string
	// LockTimeout is how long a shared transaction waits for a row that another
	// transaction holds; default 2 seconds. It keeps a twin inside somebody's long
	// SubmitTx from holding everyone.
	LockTimeout time.Duration
	// Listen says where Watch listens for the commits of other processes. Empty: on
	// a connection of the pool. A connection string: there, for a pool that goes
	// through a pooler which does not keep sessions. [ListenOff]: nowhere.
	Listen string
	// Logger gets what no caller can be told; default slog.Default().
	Logger *slog.Logger
	// Faults, for tests, are called around every commit.
	Faults *Faults
}

// Faults are a seam for tests: an error, or the end of the process, at the two
// moments that matter. Either function may be nil.
type Faults struct {
	BeforeCommit func() error // an error rolls the transaction back
	AfterCommit  func() error // an error loses the commit's acknowledgement
}

// Store is a store on a PostgreSQL database. It is safe for concurrent use. The
// pool is the caller's. When the engine has stopped, close the store and then the
// pool.
type Store struct {
	db         database
	o          Options
	text       map[string]string
	migrations []Migration
	settings   string // of shared transactions, after BEGIN
	name       string // of this process, in its hints
	hints      hints
	isolation  atomic.Pointer[string] // the connections' default; nil: not asked yet
}

var _ store.Store = (*Store)(nil)

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,50}$`)

// New makes a store on a pool of the caller's. It does not connect; see
// [Store.Migrate] and [Store.Check]. Hooks get a pgx.Tx through [Unwrap].
func New(pool *pgxpool.Pool, o Options) (*Store, error) {
	return newStore(pgxPool{pgxRunner{pool}, pool}, o)
}

// NewSQL makes a store on a database/sql handle that was opened with pgx's
// driver ("pgx"). Hooks get a *sql.Tx through [UnwrapSQL].
func NewSQL(db *sql.DB, o Options) (*Store, error) {
	return newStore(sqlPool{sqlRunner{db}, db}, o)
}

func newStore(db database, o Options) (*Store, error) {
	if o.Schema == "" {
		o.Schema = "onereply"
	}
	if !plainName.MatchString(o.Schema) {
		return nil, fmt.Errorf("%w: schema %q must be a plain lower-case name", onereply.ErrInvalid, o.Schema)
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	text, err := loadStatements(o.Schema)
	if err != nil {
		return nil, err
	}
	migrations, err := loadMigrations(o.Schema)
	if err != nil {
		return nil, err
	}
	s := &Store{
		db: db, o: o, text: text, migrations: migrations, name: rand.Text(),
		settings: fmt.Sprintf("; set local lock_timeout = %d", o.LockTimeout.Milliseconds()),
	}
	s.hints.quit = make(chan struct{})
	return s, nil
}

// Check reports what would break a promise: a schema that is not this program's,
// or commits that do not wait for the disk.
func (s *Store) Check(ctx context.Context) error {
	status, err := s.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	for _, m := range status {
		if m.AppliedAt.IsZero() {
			return &onereply.Error{
				Op: "schema", Err: fmt.Errorf("migration %s is missing in schema %s", m.Name, s.o.Schema),
				Hint: "run onereply migrate up",
			}
		}
	}
	var commit string
	err = s.db.query(ctx, s.text["check"], nil, func(scan func(...any) error) error { return scan(&commit) })
	if err != nil {
		return fault("check", err)
	}
	if commit == "off" {
		return &onereply.Error{
			Op: "check", Err: fmt.Errorf("synchronous_commit is %s", commit),
			Hint: "what was answered could be lost in a crash; set it to on, or higher, for this role or database",
		}
	}
	return nil
}

// of returns our form of a transaction, whoever made it.
func of(tx onereply.Tx) (*Tx, error) {
	t, ok := tx.(*Tx)
	if !ok {
		return nil, fmt.Errorf("%w: a transaction of %s was given to the store postgres", onereply.ErrInvalid, tx.TxDriver())
	}
	return t, nil
}

// do runs a named statement on r.
func (s *Store) do(ctx context.Context, r runner, name string, each func(func(...any) error) error, args ...any) error {
	text, ok := s.text[name]
	if !ok {
		return fmt.Errorf("%w: no statement %s", onereply.ErrInvalid, name)
	}
	if each == nil {
		each = func(func(...any) error) error { return nil }
	}
	if err := r.query(ctx, text, args, each); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
