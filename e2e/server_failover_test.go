//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onereply/onereply/internal/pgcluster"
)

// heldTasks presses n times and waits until each is in its call, which the gate
// lets end.
func heldTasks(w *world, a *api, conversation, name string, n int) *gate {
	w.t.Helper()
	g := newGate()
	for i := range n {
		w.model.script(fmt.Sprintf("%s %d", name, i), held(g, say("answer")))
	}
	ids, refused := insistMany(w, a, conversation, name, n)
	if refused != 0 {
		w.t.Errorf("%d presses were told to come back before anything was wrong", refused)
	}
	for i := range n {
		w.model.awaitAsked(fmt.Sprintf("%s %d", name, i), 1)
	}
	w.follow(ids[0])
	return g
}

// moved has the checker look at another server from now on.
func (s *server) moved(to *pgcluster.Cluster) { s.cluster, s.books = to, nil }

// TestServerMovesBehindItsAddress: the server comes back at another port, and the
// address that the processes know leads there.
func TestServerMovesBehindItsAddress(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	w := newClusterWorld(t, c)
	w.troubled = true
	w.calm()
	between := startCable(t, c.Address())
	w.flags = append(w.flags, "--database", w.server.url(between.address(), ""))
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	g := heldTasks(w, a, conversation, "held", 30)
	if err := c.Stop(true); err != nil {
		t.Fatal(err)
	}
	between.cut()
	got, err := a.send(conversation, "during", "during", nil)
	away(w, got, err)
	if err := c.Move(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.server.moved(c)
	between.lead(c.Address())
	insist(w, a, conversation, "during", "during")
	g.open()
	allCompleted(w, 31, true)
	w.settle(p)
}

// TestFailoverToAStandby: the processes know two hosts. The first one dies while
// messages are taken and answered; its synchronous standby is promoted and has
// all that was ever answered 2xx.
func TestFailoverToAStandby(t *testing.T) {
	t.Parallel()
	primary := ownCluster(t)
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	w := newClusterWorld(t, primary)
	w.troubled = true
	w.calm()
	w.server.admin("ALTER SYSTEM SET synchronous_standby_names = '*'")
	w.server.admin("SELECT pg_reload_conf()")
	w.flags = append(w.flags, "--database", w.server.url(primary.Address()+","+standby.Address(), "&target_session_attrs=read-write"))
	p := w.start(everything)
	l := w.ledger()
	eventually(t, 20*time.Second, "the standby is synchronous", func() bool {
		return l.count("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
	})
	a := w.api(p)
	conversation := a.conversation()
	g := heldTasks(w, a, conversation, "held", 30)
	failed := make(chan error, 1)
	go func() {
		soon(10*time.Second, func() bool { return w.model.sim.Total() > 40 })
		if err := primary.Stop(true); err != nil {
			failed <- err
			return
		}
		failed <- standby.Promote(context.Background())
	}()
	pressed, refused := insistUntil(w, a, conversation, "load", failed)
	t.Logf("%d presses were taken and %d told to come back", pressed, refused)
	w.server.moved(standby)
	insist(w, a, conversation, "afterwards", "afterwards")
	g.open()
	allCompleted(w, pressed+31, false)
	if n := w.ledger().count("SELECT count(*) FROM tasks WHERE version <> 1 AND id IN (SELECT task_id FROM messages WHERE text LIKE 'held%')"); n != 0 {
		t.Errorf("%d tasks that were in their calls were worked again", n)
	}
	w.settle(p)
}

// TestServerOutOfConnections: another program takes every connection there is.
func TestServerOutOfConnections(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, "max_connections = 40", "superuser_reserved_connections = 0")
	w := newClusterWorld(t, c)
	w.troubled = true
	w.calm()
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	g := heldTasks(w, a, conversation, "held", 10)
	giveBack := hog(t, c)
	got, err := a.send(conversation, "during", "during", nil)
	away(w, got, err)
	if got, err := a.do(t.Context(), "GET", "/readyz", "", nil); err != nil || got.status != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d %v while there is no connection", got.status, err)
	}
	refusedStart(t, 1, launch{args: w.flags}, "--database", "connections")
	g.open()
	giveBack()
	insist(w, a, conversation, "during", "during")
	allCompleted(w, 11, true)
	w.settle(p)
}

// hog takes connections, and those of the service from it, until the service has
// none left.
func hog(t *testing.T, c *pgcluster.Cluster) (giveBack func()) {
	t.Helper()
	var mine []*pgx.Conn
	ctx := context.Background()
	giveBack = func() {
		for _, conn := range mine {
			if err := conn.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		mine = nil
	}
	t.Cleanup(func() { giveBack() })
	eventually(t, 30*time.Second, "the service has no connection", func() bool {
		for {
			conn, err := pgx.Connect(ctx, c.URL("postgres")+"&application_name=hog")
			if err != nil {
				break // full
			}
			mine = append(mine, conn)
		}
		if len(mine) == 0 {
			return false
		}
		var left int
		const taken = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'hog'"
		if err := mine[0].QueryRow(ctx, taken).Scan(&left); err != nil {
			t.Error(err)
		}
		if left == 0 {
			return true
		}
		_, err := mine[0].Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'hog'")
		if err != nil {
			t.Error(err)
		}
		return false
	})
	return giveBack
}

// TestPoolOfOneConnection: nothing that the service does needs two connections at
// once, so that a full pool is slow and not a deadlock.
func TestPoolOfOneConnection(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.calm()
	w.flags = append(w.flags, "--database", w.server.url(w.server.cluster.Address(), "&pool_max_conns=1"))
	p := w.start(oneProcess)
	a := w.api(p)
	conversation := a.conversation()
	ids, refused := insistMany(w, a, conversation, "q", 60)
	if refused != 0 {
		t.Errorf("%d presses were told to come back", refused)
	}
	for _, id := range ids[:10] {
		w.follow(id)
	}
	allCompleted(w, 60, true)
	w.settle(p)
}
