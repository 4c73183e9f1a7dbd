package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/internal/pgcluster"
)

func TestTheTicketAndItsTaskCommitTogether(t *testing.T) {
	t.Parallel()
	cluster, err := pgcluster.Start(t.Context(), "fsync = off")
	if errors.Is(err, pgcluster.ErrNoServer) && !strings.Contains(os.Getenv("ONEREPLY_TEST_REQUIRE"), "postgres") {
		t.Skip("SKIPPED: no PostgreSQL server binaries on this machine")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	url := cluster.URL("postgres")
	for _, want := range []string{"completed \"HELLO\" (created now: true)\n", "completed \"HELLO\" (created now: false)\n"} {
		var out strings.Builder
		if err := run(t.Context(), &out, url, "k", "hello"); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("printed %q, want %q", &out, want)
		}
	}
	if err := run(t.Context(), io.Discard, url, "k", "something else"); !errors.Is(err, onereply.ErrKeyReused) {
		t.Errorf("another question under the press: %v, want ErrKeyReused", err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var rows int
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM public.tickets t JOIN onereply.tasks k ON k.id = t.task WHERE answer = 'HELLO' AND question = 'hello' AND status = 'completed'").Scan(&rows)
	if err != nil || rows != 1 {
		t.Errorf("%d answered tickets, want one (%v)", rows, err)
	}
}
