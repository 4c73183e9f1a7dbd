package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply/internal/pgcluster"
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

// needServer skips loudly where there is none; TestMain has failed already where
// one is required.
func needServer(t testing.TB) {
	t.Helper()
	if server.cluster == nil {
		t.Skip("SKIPPED: no PostgreSQL server binaries on this machine")
	}
}

// config is that of a pool on the cluster, with settings as a URL takes them:
// "&search_path=x".
func config(t testing.TB, settings string) *pgxpool.Config {
	t.Helper()
	needServer(t)
	c, err := pgxpool.ParseConfig(server.cluster.URL("postgres") + settings)
	if err != nil {
		t.Fatal(err)
	}
	c.MaxConns = 16
	return c
}

func pool(t testing.TB, c *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// freshSchema names a schema that no other test uses.
func freshSchema() string { return fmt.Sprintf("t%d", server.schemas.Add(1)) }
