//go:build unix

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply/internal/pgcluster"
)

// oneByOne sends n messages, each after the last one's end, and logs how long
// each waited for a worker by the server's clock. The poll is the bound.
func oneByOne(w *world, p *process, name string, n int) {
	w.t.Helper()
	a := w.api(p)
	conversation := a.conversation()
	var waits []time.Duration
	for i := range n {
		text := fmt.Sprintf("%s%d", name, i)
		task := w.send(a, conversation, text, text, nil)
		end := w.expect(p, task.ID, want{status: "completed", text: "answer to " + text, version: 1, attempts: 1, calls: 1, requests: 1})
		waits = append(waits, end.Attempts[0].StartedAt.Sub(end.CreatedAt))
	}
	slices.Sort(waits)
	w.t.Logf("%s: waited for a worker: median %v, longest %v", name, waits[n/2].Round(100*time.Microsecond), waits[n-1].Round(100*time.Microsecond))
	if waits[n-1] > 4*time.Second {
		w.t.Errorf("a task waited %v for a worker that polls every second", waits[n-1])
	}
}

// listeners counts the connections of the service that listen.
func (s *server) listeners() int {
	return s.ledger().count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'onereply' AND query LIKE 'listen%'")
}

// TestHintsAreHeard: between processes, by one connection of each.
func TestHintsAreHeard(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.calm()
	p := w.start(everything)
	eventually(t, 10*time.Second, "each process listens", func() bool { return w.server.listeners() == 3 })
	oneByOne(w, p, "heard", 15)
	w.settle(p)
}

// TestHintsAreLost: no process can listen, and everything still happens within a
// poll: claims, and the ends of streams at a process that only reads. When they
// can listen again, they do.
func TestHintsAreLost(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.calm()
	between := startCable(t, w.server.cluster.Address())
	between.deafen(true)
	w.flags = append(w.flags, "--database", w.server.url(between.address(), ""))
	p := w.start(everything)
	oneByOne(w, p, "deaf", 6)
	if n := between.unheardOf(); n < 3 {
		t.Errorf("%d connections were ended because they wanted to listen, want one of each process at least", n)
	}
	between.deafen(false)
	eventually(t, 10*time.Second, "each process listens again", func() bool { return w.server.listeners() == 3 })
	oneByOne(w, p, "again", 6)
	w.settle(p)
}

// TestHintsAreOff: the same by choice, as behind a pooler.
func TestHintsAreOff(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.calm()
	w.flags = append(w.flags, "--database", w.server.url(w.server.cluster.Address(), "&listen=off"))
	p := w.start(everything)
	oneByOne(w, p, "off", 6)
	if n := w.server.listeners(); n != 0 {
		t.Errorf("%d connections listen although none should", n)
	}
	w.settle(p)
}

// TestListenersTerminated: only the listening connections are ended, again and
// again. Nobody notices, and each process comes back with one.
func TestListenersTerminated(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.calm()
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	for i := range 8 {
		eventually(t, 10*time.Second, "each process listens", func() bool { return w.server.listeners() == 3 })
		w.server.terminate("listen%")
		text := fmt.Sprintf("q%d", i)
		task := w.send(a, conversation, text, text, nil)
		w.expect(p, task.ID, want{status: "completed", text: "answer to " + text, version: 1, attempts: 1, calls: 1, requests: 1})
	}
	eventually(t, 10*time.Second, "each process listens", func() bool { return w.server.listeners() == 3 })
	w.settle(p)
}

// idleSeconds is how long nothing happens.
const idleSeconds = 12

// TestIdleLoad counts the statements of processes that have nothing to do, as the
// server sees them.
func TestIdleLoad(t *testing.T) {
	t.Parallel()
	bin, err := pgcluster.Find()
	needCluster(t, err)
	library, err := filepath.Glob(filepath.Join(filepath.Dir(bin), "lib", "pg_stat_statements.so"))
	if err != nil {
		t.Fatal(err)
	}
	if len(library) == 0 {
		t.Skip("SKIPPED: counting statements needs the server's extension pg_stat_statements")
	}
	c := ownCluster(t, "shared_preload_libraries = 'pg_stat_statements'")
	for _, processes := range []struct {
		name  string
		roles []string
	}{
		{"one process with every role", []string{oneProcess}},
		{"ten processes", []string{"api", "api", "api", "work", "work", "work", "work", "sweep", "sweep", "dispatch"}},
	} {
		s := &server{t: t, cluster: c, database: "idle" + fmt.Sprint(len(processes.roles))}
		s.admin("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
		s.admin("CREATE DATABASE " + s.database)
		w := s.world()
		w.flags = append(w.flags, "--lease", "30s", "--renew", "10s", "--sweep", "5s") // the defaults
		for _, roles := range processes.roles {
			w.start(roles)
		}
		oneByOne(w, w.front, "first", 1) // everything has happened once
		w.settle(w.front)
		count := countStatements(s)
		perSecond := float64(count.sum) / idleSeconds / float64(len(processes.roles))
		t.Logf("%s: %.2f statements a second each; %s", processes.name, perSecond, count.most)
		if perSecond > 1.6 { // one a second, what the sweep asks, and a little for the edges
			t.Errorf("%s: %.2f statements a second each while idle", processes.name, perSecond)
		}
		for _, p := range w.processes {
			p.kill()
		}
	}
}

type statements struct {
	sum  int
	most string
}

// countStatements counts what runs in the database for a while.
func countStatements(s *server) (n statements) {
	s.t.Helper()
	db := s.connect("postgres", "")
	defer db.Close()
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		s.t.Fatal(err)
	}
	began := time.Now()
	eventually(s.t, 2*idleSeconds*time.Second, "a while has passed", func() bool { return time.Since(began) >= idleSeconds*time.Second })
	rows, err := db.QueryContext(ctx, `SELECT calls, regexp_replace(left(query, 60), '\s+', ' ', 'g') FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1) ORDER BY calls DESC`, s.database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	var most []string
	for rows.Next() {
		var calls int
		var text string
		if err := rows.Scan(&calls, &text); err != nil {
			s.t.Fatal(err)
		}
		n.sum += calls
		most = append(most, fmt.Sprintf("%d × %s", calls, text))
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	n.most = strings.Join(most[:min(8, len(most))], " | ")
	return n
}
