package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/postgres"
	"github.com/onereply/onereply/store/storetest"
)

// world is a schema of its own with a clock in the test's hand: the functions
// clock_timestamp and statement_timestamp of the schema stand before the server's
// in the connections' search path and give what the table reading holds.
type world struct {
	t      testing.TB
	schema string
	config *pgxpool.Config // of pools that see the clock in hand
	real   *pgxpool.Pool   // without it
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	t.Helper()
	schema := freshSchema()
	w := &world{t: t, schema: schema, real: pool(t, config(t, ""))}
	w.exec(`CREATE SCHEMA ` + schema + `;
		CREATE TABLE ` + schema + `.reading (now timestamptz NOT NULL);
		CREATE FUNCTION ` + schema + `.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now FROM ` + schema + `.reading';
		CREATE FUNCTION ` + schema + `.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now FROM ` + schema + `.reading';
		CREATE TABLE ` + schema + `.app_rows (name text NOT NULL);
		INSERT INTO ` + schema + `.reading VALUES ('` + epoch.Format(time.RFC3339Nano) + `')`)
	w.config = config(t, "&search_path="+schema+",pg_catalog")
	return w
}

func (w *world) exec(text string) {
	w.t.Helper()
	if _, err := w.real.Exec(w.t.Context(), text); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

func (w *world) now() (now time.Time) {
	w.t.Helper()
	if err := w.real.QueryRow(w.t.Context(), "SELECT now FROM "+w.schema+".reading").Scan(&now); err != nil {
		w.t.Fatal(err)
	}
	return now.UTC()
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	w.exec(fmt.Sprintf("UPDATE %s.reading SET now = now + interval '%d microseconds'", w.schema, d.Microseconds()))
}

// flavour is a way to reach the server.
type flavour struct {
	name string
	open func(w *world, o postgres.Options) (*postgres.Store, error)
	add  func(ctx context.Context, tx onereply.Tx, insert, name string) error
}

func addPgx(ctx context.Context, tx onereply.Tx, insert, name string) error {
	_, err := postgres.Unwrap(tx).Exec(ctx, insert, name)
	return err
}

func onPool(mode pgx.QueryExecMode) func(*world, postgres.Options) (*postgres.Store, error) {
	return func(w *world, o postgres.Options) (*postgres.Store, error) {
		c := w.config.Copy()
		c.ConnConfig.DefaultQueryExecMode = mode
		return postgres.New(pool(w.t, c), o)
	}
}

func onSQL(w *world, o postgres.Options) (*postgres.Store, error) {
	db := stdlib.OpenDB(*w.config.ConnConfig.Copy())
	db.SetMaxOpenConns(16)
	w.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return postgres.NewSQL(db, o)
}

func flavours() []flavour {
	return []flavour{
		{"pgx", onPool(pgx.QueryExecModeCacheStatement), addPgx},
		{"database-sql", onSQL, func(ctx context.Context, tx onereply.Tx, insert, name string) error {
			_, err := postgres.UnwrapSQL(tx).ExecContext(ctx, insert, name)
			return err
		}},
		// What a pooler in transaction mode asks for: nothing prepared.
		{"exec", onPool(pgx.QueryExecModeExec), addPgx},
		{"simple", onPool(pgx.QueryExecModeSimpleProtocol), addPgx},
	}
}

func (w *world) open(f flavour, o postgres.Options) *postgres.Store {
	w.t.Helper()
	o.Schema = w.schema
	s, err := f.open(w, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	if err := s.Migrate(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return s
}

var errLost = errors.New("the line went dead")

func (f flavour) fixture(t testing.TB) storetest.Fixture {
	t.Helper()
	w := newWorld(t)
	var lose atomic.Bool
	s := w.open(f, postgres.Options{Faults: &postgres.Faults{AfterCommit: func() error {
		if lose.Swap(false) {
			return errLost
		}
		return nil
	}}})
	return storetest.Fixture{
		Store: s, Second: w.open(f, postgres.Options{}), Now: w.now, Advance: w.advance,
		LoseNextCommitAck: func() { lose.Store(true) },
		AddRow: func(ctx context.Context, tx onereply.Tx, name string) error {
			return f.add(ctx, tx, "INSERT INTO "+w.schema+".app_rows (name) VALUES ($1)", name)
		},
		Rows: func(ctx context.Context) (n int, err error) {
			err = w.real.QueryRow(ctx, "SELECT count(*) FROM "+w.schema+".app_rows").Scan(&n)
			return n, err
		},
	}
}

// The whole suite on a pgx pool and on database/sql; one case of every sort in
// the modes that a pooler needs.
func TestStoreConformance(t *testing.T) {
	t.Parallel()
	needServer(t)
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.name == "pgx" || f.name == "database-sql" {
				storetest.Run(t, f.fixture)
				return
			}
			storetest.RunSome(t, f.fixture, func(c storetest.Case) bool {
				for _, smoke := range []string{
					"submit creates", "submit of a batch", "submit of a request", "claim hands out", "claim of a takeover hands", "guard of one entry",
					"renew", "call is counted", "accept fills", "retry puts", "fail ends", "resume reopens", "transaction that fails leaves nothing",
					"draft is read", "timeline tells a whole", "purge removes tasks", "query", "stats", "watch",
				} {
					if strings.HasPrefix(c.Name, smoke) {
						return true
					}
				}
				return false
			})
		})
	}
}
