package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/internal/pgcluster"
	"github.com/onereply/onereply/store/postgres"
	"github.com/onereply/onereply/store/storetest"
)

// server is the private cluster of this test process; empty where the machine
// has no PostgreSQL.
var server struct {
	cluster *pgcluster.Cluster
	schemas atomic.Int64
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	cluster, err := pgcluster.Start(context.Background(), "fsync = off", "synchronous_commit = on", "deadlock_timeout = '200ms'")
	switch {
	case errors.Is(err, pgcluster.ErrNoServer) && !required("postgres"):
		fmt.Fprintln(os.Stderr, "SKIPPED: store/postgres needs the PostgreSQL server's binaries, which are not on this machine")
	case err != nil:
		fmt.Fprintln(os.Stderr, "starting postgres:", err)
		return 1
	default:
		defer func() {
			if err := cluster.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "removing the cluster:", err)
				code = 1
			}
		}()
	}
	server.cluster = cluster
	return m.Run()
}

func required(part string) bool {
	for _, r := range strings.Split(os.Getenv("ONEREPLY_TEST_REQUIRE"), ",") {
		if strings.TrimSpace(r) == part {
			return true
		}
	}
	return false
}

// world is a schema of its own with a clock in the test's hand: the functions
// clock_timestamp and statement_timestamp of the schema stand before the server's
// in the connections' search path and give what the table reading holds.
type world struct {
	t      testing.TB
	schema string
	pool   *pgxpool.Pool
	real   *pgxpool.Pool // without the clock in hand
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func connect(t testing.TB, settings string) *pgxpool.Pool {
	t.Helper()
	if server.cluster == nil {
		t.Skip("no PostgreSQL on this machine")
	}
	config, err := pgxpool.ParseConfig(server.cluster.URL("postgres") + settings)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 24
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	schema := fmt.Sprintf("t%d", server.schemas.Add(1))
	w := &world{t: t, schema: schema, real: connect(t, "")}
	w.exec(`CREATE SCHEMA ` + schema + `;
		CREATE TABLE ` + schema + `.reading (now timestamptz NOT NULL);
		CREATE FUNCTION ` + schema + `.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now FROM ` + schema + `.reading';
		CREATE FUNCTION ` + schema + `.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now FROM ` + schema + `.reading';
		CREATE TABLE ` + schema + `.app_rows (name text NOT NULL);
		INSERT INTO ` + schema + `.reading VALUES ('` + epoch.Format(time.RFC3339Nano) + `')`)
	w.pool = connect(t, "&search_path="+schema+",pg_catalog")
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
	w.exec(fmt.Sprintf("UPDATE %s.reading SET now = now + interval '%d microseconds'", w.schema, d.Microseconds()))
}

func (w *world) open(o postgres.Options) *postgres.Store {
	w.t.Helper()
	o.Schema = w.schema
	s, err := postgres.New(w.pool, o)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Migrate(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return s
}

var errLost = errors.New("the line went dead")

func fixture(t testing.TB) storetest.Fixture {
	t.Helper()
	w := newWorld(t)
	var lose atomic.Bool
	s := w.open(postgres.Options{Faults: &postgres.Faults{AfterCommit: func() error {
		if lose.Swap(false) {
			return errLost
		}
		return nil
	}}})
	return storetest.Fixture{
		Store: s, Second: w.open(postgres.Options{}), Now: w.now, Advance: w.advance,
		LoseNextCommitAck: func() { lose.Store(true) },
		AddRow: func(ctx context.Context, tx onereply.Tx, name string) error {
			_, err := postgres.Unwrap(tx).Exec(ctx, "INSERT INTO "+w.schema+".app_rows (name) VALUES ($1)", name)
			return err
		},
		Rows: func(ctx context.Context) (n int, err error) {
			err = w.real.QueryRow(ctx, "SELECT count(*) FROM "+w.schema+".app_rows").Scan(&n)
			return n, err
		},
	}
}

func TestStoreConformance(t *testing.T) {
	t.Parallel()
	if server.cluster == nil {
		t.Skip("no PostgreSQL on this machine")
	}
	storetest.Run(t, fixture)
}
