//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // reads the database without the store under test

	"github.com/onereply/onereply/internal/pgcluster"
)

// shared is the cluster that the tests of this process have in common, each
// with a database of its own. It is started by the first test that wants it.
var shared struct {
	once    sync.Once
	cluster *pgcluster.Cluster
	err     error
	mu      sync.Mutex
	names   int
}

// quick are the settings of every cluster here: what is tried is a server that
// ends, not a disk.
var quick = []string{"fsync = off", "full_page_writes = off", "max_connections = 400", "deadlock_timeout = '200ms'", "log_min_messages = fatal"}

// needCluster skips loudly, or fails where the part is required, when err says
// that there is no server on this machine.
func needCluster(t *testing.T, err error) {
	t.Helper()
	switch {
	case errors.Is(err, pgcluster.ErrNoServer) && !required("postgres"):
		t.Skip("SKIPPED: no PostgreSQL server binaries on this machine")
	case err != nil:
		t.Fatal(err)
	}
}

func required(part string) bool {
	for r := range strings.SplitSeq(os.Getenv("ONEREPLY_TEST_REQUIRE"), ",") {
		if strings.TrimSpace(r) == part {
			return true
		}
	}
	return false
}

func sharedCluster(t *testing.T) *pgcluster.Cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = pgcluster.Start(context.Background(), quick...) })
	needCluster(t, shared.err)
	return shared.cluster
}

// endSharedCluster ends it once all tests are over.
func endSharedCluster() error {
	if shared.cluster == nil {
		return nil
	}
	return shared.cluster.Close()
}

// ownCluster is for a test that does harm to the whole server.
func ownCluster(t *testing.T, settings ...string) *pgcluster.Cluster {
	t.Helper()
	return clusterIn(t, nil, settings...)
}

func clusterIn(t *testing.T, env []string, settings ...string) *pgcluster.Cluster {
	t.Helper()
	c, err := pgcluster.StartIn(context.Background(), env, append(append([]string{}, quick...), settings...)...)
	needCluster(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// server is where a world on PostgreSQL keeps its rows.
type server struct {
	t        *testing.T
	cluster  *pgcluster.Cluster
	database string
	books    *ledger // nil until it was asked for
}

// newServerWorld is a world on a database of its own of the shared cluster.
func newServerWorld(t *testing.T) *world {
	t.Helper()
	c := sharedCluster(t)
	shared.mu.Lock()
	shared.names++
	name := fmt.Sprintf("world%d", shared.names)
	shared.mu.Unlock()
	s := &server{t: t, cluster: c, database: name}
	s.admin("CREATE DATABASE " + name)
	t.Cleanup(func() { s.admin("DROP DATABASE " + name + " WITH (FORCE)") })
	return s.world()
}

// newClusterWorld is a world that has the cluster to itself.
func newClusterWorld(t *testing.T, c *pgcluster.Cluster) *world {
	t.Helper()
	return (&server{t: t, cluster: c, database: "postgres"}).world()
}

func (s *server) world() *world {
	w := newWorld(s.t)
	w.server = s
	w.flags = append(w.flags, "--database", s.url(s.cluster.Address(), ""))
	return w
}

// url leads to the database by way of an address, with settings such as
// "&pool_max_conns=2".
func (s *server) url(address, settings string) string {
	if !strings.Contains(settings, "pool_max_conns") {
		settings += "&pool_max_conns=8"
	}
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable%s", address, s.database, settings)
}

func (s *server) connect(database, settings string) *sql.DB {
	s.t.Helper()
	db, err := sql.Open("pgx", s.cluster.URL(database)+"&application_name=checker"+settings)
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

// admin runs a statement in the cluster's own database.
func (s *server) admin(statement string, args ...any) {
	s.t.Helper()
	if err := s.tryAdmin(statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) tryAdmin(statement string, args ...any) error {
	db, err := sql.Open("pgx", s.cluster.URL("postgres")+"&application_name=checker")
	if err != nil {
		return err
	}
	if _, err = db.ExecContext(context.Background(), statement, args...); err != nil {
		err = fmt.Errorf("%s: %w", statement, err)
	}
	return errors.Join(err, db.Close())
}

// words make the tables read as those of the file do: times as milliseconds
// since 1970, zero for none, and JSON by SQLite's function. The checker's rules
// are then the same for both.
const words = `
CREATE SCHEMA IF NOT EXISTS ledger;
CREATE OR REPLACE FUNCTION ledger.ms(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT coalesce(floor(extract(epoch FROM at) * 1000)::bigint, 0)';
CREATE OR REPLACE FUNCTION ledger.json_extract(doc text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS
	'SELECT doc::json ->> substr(path, 3)';
CREATE OR REPLACE VIEW ledger.tasks AS SELECT id, kind, scope, status, reason, error_code, version, attempt, worker, ledger.ms(lease_until) AS lease_until,
	ledger.ms(run_at) AS run_at, ledger.ms(ended_at) AS ended_at, attempts_used, attempts_max, calls_used, calls_max, open_call FROM onereply.tasks;
CREATE OR REPLACE VIEW ledger.attempts AS SELECT task_id, version, attempt, worker, ledger.ms(started_at) AS started_at, ledger.ms(ended_at) AS ended_at,
	outcome, renewals FROM onereply.attempts;
CREATE OR REPLACE VIEW ledger.calls AS SELECT task_id, number, version, ledger.ms(closed_at) AS closed_at, class, requests FROM onereply.calls;
`

// ledger opens the database behind the service's back, once a world.
func (s *server) ledger() *ledger {
	s.t.Helper()
	if s.books != nil {
		return s.books
	}
	db := s.connect(s.database, "&search_path=ledger,onereply")
	s.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			s.t.Error(err)
		}
	})
	if _, err := db.ExecContext(context.Background(), words); err != nil {
		s.t.Fatal(err)
	}
	s.books = &ledger{t: s.t, db: db, onServer: true}
	return s.books
}

// holdRow takes a task's row, as another program would.
func (s *server) holdRow(id string) (release func()) {
	s.t.Helper()
	db := s.connect(s.database, "")
	tx, err := db.BeginTx(context.Background(), nil)
	if err == nil {
		_, err = tx.ExecContext(context.Background(), "SELECT 1 FROM onereply.tasks WHERE id = $1 FOR UPDATE", id)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(release)
	return release
}

// writing reports whether a process of the service has had a transaction with
// writes in it open for a while.
func (s *server) writing() bool {
	s.t.Helper()
	l := s.ledger()
	return !soon(60*time.Millisecond, func() bool {
		return l.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'onereply' AND backend_xid IS NOT NULL") == 0
	})
}

// settleTransactions: no process leaves a transaction open, whatever happened.
func (s *server) settleTransactions() {
	s.t.Helper()
	l := s.ledger()
	eventually(s.t, 10*time.Second, "no transaction is open", func() bool {
		return l.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'onereply' AND state LIKE 'idle in transaction%'") == 0
	})
}

// numberedPlaces writes $1, $2, … for the question marks of a query.
func numberedPlaces(query string) string {
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r == '?' {
			n++
			fmt.Fprintf(&b, "$%d", n)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestBoundaryOnPostgres tries every boundary on a server, with processes of
// their own for the API, the workers and the sweep.
func TestBoundaryOnPostgres(t *testing.T) {
	t.Parallel()
	for _, b := range boundaries {
		t.Run(b.step+"/"+b.name, func(t *testing.T) {
			t.Parallel()
			b.test(newServerWorld(t))
		})
	}
}

// TestCaseOnPostgres tries the cases likewise.
func TestCaseOnPostgres(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(newServerWorld(t))
		})
	}
}
