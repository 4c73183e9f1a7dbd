//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// away checks the answer to a request while the database cannot be used: 503,
// when to come back, and a problem that says so.
func away(w *world, got answer, err error) {
	w.t.Helper()
	var problem struct{ Type string }
	if err == nil {
		err = json.Unmarshal(got.body, &problem)
	}
	if err != nil || got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.HasSuffix(problem.Type, "/unavailable") {
		w.t.Errorf("while the database is away: %d Retry-After %q %s %v, want 503", got.status, got.header.Get("Retry-After"), got.body, err)
	}
}

// insist presses Send under one key until it is taken. Every other answer has to
// be a proper 503. It returns the task and how often it was told to come back.
func insist(w *world, a *api, conversation, key, text string) (id string, refused int) {
	w.t.Helper()
	taken := soon(60*time.Second, func() bool {
		got, err := a.send(conversation, key, text, nil)
		if err == nil && (got.status == http.StatusAccepted || got.status == http.StatusOK) {
			id = w.note(key, text, got).Task.ID
			return true
		}
		refused++
		away(w, got, err)
		return w.t.Failed()
	})
	if !taken {
		w.t.Errorf("%s was not taken within a minute", key)
	}
	return id, refused
}

// insistMany presses n keys from 16 clients, each until it is taken.
func insistMany(w *world, a *api, conversation, name string, n int) (ids []string, refused int) {
	w.t.Helper()
	ids = make([]string, n)
	var sum atomic.Int64
	next := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range next {
				id, r := insist(w, a, conversation, fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("%s %d", name, i))
				ids[i] = id
				sum.Add(int64(r))
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	return ids, int(sum.Load())
}

// insistUntil presses, 20 keys at a time, until what goes on meanwhile is done,
// and once more. It returns how many keys that were, and how often a press was
// told to come back.
func insistUntil(w *world, a *api, conversation, name string, done <-chan error) (pressed, refused int) {
	w.t.Helper()
	for over := false; ; {
		_, r := insistMany(w, a, conversation, fmt.Sprintf("%s-%d", name, pressed), 20)
		pressed, refused = pressed+20, refused+r
		if over {
			return pressed, refused
		}
		select {
		case err := <-done:
			if err != nil {
				w.t.Fatal(err)
			}
			over = true
		default:
		}
	}
}

// allCompleted waits for the end and checks that every task completed, and how
// often each was worked: exactly, or at least once where takeovers were possible.
func allCompleted(w *world, n int, onceEach bool) {
	w.t.Helper()
	l := w.ledger()
	eventually(w.t, 60*time.Second, "everything has ended", func() bool { return l.inFlight() == 0 })
	if done := l.count("SELECT count(*) FROM tasks WHERE status = 'completed'"); done != n {
		w.t.Errorf("%d of %d tasks completed", done, n)
	}
	again := l.count("SELECT count(*) FROM tasks WHERE version <> 1 OR attempts_used <> 1 OR calls_used <> 1")
	if onceEach && (again != 0 || w.model.sim.Total() != n) {
		w.t.Errorf("%d tasks were worked more than once, with %d requests for %d tasks", again, w.model.sim.Total(), n)
	}
	w.t.Logf("%d tasks, %d of them worked more than once, %d requests", n, again, w.model.sim.Total())
}

// patient gives tasks the budget to outlive a long outage.
func (w *world) patient() {
	w.flags = append(w.flags, "--max-attempts", "1000", "--max-calls", "1000")
}

// TestServerRestartedImmediately: the server crashes while 100 tasks run, all in
// their calls, and half of the answers come while it is away. The leases outlive
// it, so each is still worked once.
func TestServerRestartedImmediately(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	w := newClusterWorld(t, c)
	w.troubled = true
	w.calm()
	p := w.start("api")
	w.start("work", "--workers", "60")
	w.start("work", "--workers", "60")
	w.start("sweep")
	a := w.api(p)
	conversation := a.conversation()
	early, late := newGate(), newGate()
	for i := range 100 {
		g := early
		if i%2 == 1 {
			g = late
		}
		w.model.script(fmt.Sprintf("held %d", i), held(g, say("answer")))
	}
	ids, _ := insistMany(w, a, conversation, "held", 100)
	for i := range 100 {
		w.model.awaitAsked(fmt.Sprintf("held %d", i), 1)
	}
	for _, id := range ids[:5] {
		w.follow(id)
	}
	if err := c.Stop(true); err != nil {
		t.Fatal(err)
	}
	early.open()
	got, err := a.send(conversation, "during", "during", nil)
	away(w, got, err)
	got, err = a.do(t.Context(), "GET", "/v1/tasks/"+ids[0], "", nil)
	away(w, got, err)
	if got, err := a.do(t.Context(), "GET", "/readyz", "", nil); err != nil || got.status != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d %v while the database is away", got.status, err)
	}
	if err := c.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	insist(w, a, conversation, "during", "during")
	t.Logf("a press was taken %v after the server was up", time.Since(up).Round(time.Millisecond))
	late.open()
	allCompleted(w, 101, true)
	t.Logf("all tasks had ended %v after the server was up", time.Since(up).Round(time.Millisecond))
	w.settle(p)
}

// TestServerRestartedUnderLoad: it crashes three times while messages come in and
// are answered. What a crash interrupts is found again by its key or its lease.
func TestServerRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	w := newClusterWorld(t, c)
	w.troubled = true
	w.patient()
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	crashed := make(chan error, 1)
	go func() {
		for range 3 {
			if !soon(10*time.Second, func() bool { return w.model.sim.Total()%25 > 15 }) {
				continue // everything was answered already
			}
			if err := c.Stop(true); err != nil {
				crashed <- err
				return
			}
			if err := c.StartServer(t.Context()); err != nil {
				crashed <- err
				return
			}
		}
		crashed <- nil
	}()
	_, refused := insistMany(w, a, conversation, "load", 150)
	if err := <-crashed; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d presses were told to come back", refused)
	allCompleted(w, 150, false)
	w.settle(p)
}

// terminate ends the connections of the service to its database.
func (s *server) terminate(which string) {
	s.t.Helper()
	err := s.tryAdmin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'onereply' AND datname = $1 AND query LIKE $2", s.database, which)
	if err != nil {
		s.t.Error(err)
	}
}

// TestConnectionsTerminated: an operator ends every connection of the service
// again and again while 100 messages come in and are answered.
func TestConnectionsTerminated(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.troubled = true
	w.patient()
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	const rounds = 25
	done := make(chan int, 1)
	quit := make(chan struct{})
	go func() {
		tick := time.NewTicker(40 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-t.Context().Done():
			}
			if n >= rounds {
				select {
				case <-quit:
					done <- n
					return
				default:
				}
			}
			w.server.terminate("%")
		}
	}()
	_, refused := insistMany(w, a, conversation, "cut", 100)
	close(quit)
	t.Logf("all connections were terminated %d times; %d presses were told to come back", <-done, refused)
	allCompleted(w, 100, false)
	w.settle(p)
}

// TestTransactionsKilledForIdling: the server ends transactions in which nothing
// happens for a while, as one does in which the process was held up between two
// statements. It is a failure that certainly undid everything.
func TestTransactionsKilledForIdling(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.troubled = true
	w.calm()
	w.server.admin("ALTER DATABASE " + w.server.database + " SET idle_in_transaction_session_timeout = '200ms'")
	p := w.startAt("submit:before:1s", "api")
	w.startAt("accept:before:1s", "work")
	w.start("sweep")
	a := w.api(p)
	conversation := a.conversation()
	got, err := a.send(conversation, "k", "q", nil)
	away(w, got, err)
	l := w.ledger()
	if n := l.count("SELECT count(*) FROM tasks") + l.count("SELECT count(*) FROM messages") + l.count("SELECT count(*) FROM submissions WHERE task_id <> ''"); n != 0 {
		t.Errorf("%d rows were left by a transaction that was killed", n)
	}
	w.expect(p, w.send(a, conversation, "k", "q", nil).ID, once)
	w.settle(p)
}
