//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestRecoveryAfterSIGKILL: the whole service dies with ten calls open and is
// started again. Each task runs again when its lease is over, by the database's
// own times; how long that took is logged, and bounded generously.
func TestRecoveryAfterSIGKILL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	ids := make([]string, 10)
	for i := range ids {
		text := fmt.Sprintf("q%d", i)
		w.model.script(text, hang("half an "), say("second"))
		ids[i] = w.send(a, conversation, text, text, nil).ID
	}
	for i := range ids {
		w.model.awaitAsked(fmt.Sprintf("q%d", i), 1)
	}
	killed := time.Now()
	p.kill()
	l := w.ledger()
	leaseEnds := map[string]time.Time{}
	for _, id := range ids {
		leaseEnds[id] = l.leaseUntil(id)
	}
	p = w.start(everything)
	var waits []time.Duration
	for _, id := range ids {
		w.expect(p, id, twoCalls)
		again := l.claimedAt(id, 2)
		if again.Before(leaseEnds[id]) || again.Before(killed) {
			t.Errorf("task %s was taken over at %v; its lease ended at %v", id, again, leaseEnds[id])
		}
		waits = append(waits, again.Sub(killed))
	}
	slices.Sort(waits)
	t.Logf("running again after the kill: median %v, last %v; lease %v", waits[len(waits)/2], waits[len(waits)-1], lease)
	if last := waits[len(waits)-1]; last > lease+sweep+3*time.Second {
		t.Errorf("running again only %v after the kill", last)
	}
	w.settle(p)
}

// TestTwoBusyProcessesLoseNoLease: two processes write to one file as fast as
// they can, both with long answers under way. Renewals go first: every lease is
// kept, so no task is worked twice.
func TestTwoBusyProcessesLoseNoLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flags = append(w.flags, "--lease", "5s", "--renew", "1s") // what is tried is the order, not the machine
	first, second := w.start(everything), w.start(everything)
	apis := []*api{w.api(first), w.api(second)}
	const long = 12
	ids := make([]string, long)
	conversation := apis[0].conversation()
	for i := range ids {
		text := fmt.Sprintf("long%d", i)
		w.model.script(text, paced(120, 100*time.Millisecond)) // 12 s, more than two leases
		ids[i] = w.send(apis[i%2], conversation, text, text, nil).ID
	}
	ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
	defer cancel()
	var mu sync.Mutex
	var small []time.Duration
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				began := time.Now()
				got, err := apis[c%2].do(ctx, "POST", "/v1/conversations", fmt.Sprintf("c%d-%d", c, i), map[string]any{})
				if ctx.Err() != nil {
					return
				}
				if err != nil || got.status != http.StatusCreated {
					t.Errorf("a small write: %d %v %s", got.status, err, got.body)
					return
				}
				mu.Lock()
				small = append(small, time.Since(began))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i, id := range ids {
		w.expect([]*process{first, second}[i%2], id, want{status: "completed", text: numbered(120), version: 1, attempts: 1, calls: 1, requests: 1})
	}
	l := w.ledger()
	if n := l.count("SELECT count(*) FROM attempts WHERE renewals < 4 OR outcome <> 'accepted'"); n != 0 {
		t.Errorf("%d of %d attempts were not renewed as they should or did not end well", n, long)
	}
	slices.Sort(small)
	t.Logf("%d small writes in 11 s beside %d streams: p50 %v, p99 %v", len(small), long,
		small[len(small)/2].Round(time.Microsecond), small[len(small)*99/100].Round(time.Microsecond))
	w.settle(first)
}

// TestDrainWaitsForAnswers: after SIGTERM nothing new is claimed, what runs may
// end, and the process leaves with exit code 0.
func TestDrainWaitsForAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.calm()
	p := w.start("api")
	worker := w.start("work,sweep", "--drain", "20s")
	g := newGate()
	w.model.script("q", held(g, say("answer to q")))
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	worker.signal(syscall.SIGTERM)
	awaitSaid(worker, "draining")
	later := w.ask(p, "later", nil)
	g.open()
	w.expect(p, task.ID, once)
	if code := worker.exited(10 * time.Second); code != 0 {
		t.Errorf("exit code %d after a drain, want 0", code)
	}
	if now := w.api(p).task(later.ID); now.Status != "queued" || len(w.model.asked("later")) != 0 {
		t.Errorf("a draining worker claimed a new task: %s", now)
	}
	w.start("work")
	w.expect(p, later.ID, want{status: "completed", text: "answer to later", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}

// TestDrainReleasesWhatDoesNotEnd: when the grace is over the task is put back,
// and the next worker need not wait for the lease.
func TestDrainReleasesWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.calm()
	p := w.start("api,sweep")
	worker := w.start("work", "--drain", "300ms")
	w.model.script("q", hang("half an "), say("second"))
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	worker.signal(syscall.SIGTERM)
	if code := worker.exited(15 * time.Second); code != 0 {
		t.Errorf("exit code %d after a drain, want 0", code)
	}
	if now := w.api(p).task(task.ID); now.Status != "queued" || now.Attempts[0].Outcome != "interrupted" {
		t.Errorf("after the drain the task is %s, attempts %+v", now, now.Attempts)
	}
	w.start("work")
	w.expect(p, task.ID, twoCalls)
	w.settle(p)
}

// TestASecondSignalEndsAtOnce: whoever cannot wait for the drain signals again.
// What was lost is taken over like any crash.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start("api,sweep")
	worker := w.start("work", "--drain", "10m")
	w.model.script("q", hang("half an "), say("second"))
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	worker.signal(syscall.SIGTERM)
	awaitSaid(worker, "draining")
	worker.signal(syscall.SIGTERM)
	if code := worker.exited(10 * time.Second); code == 0 {
		t.Error("exit code 0 although the drain was cut short")
	}
	w.start("work")
	checkTakeover(w, w.expect(p, task.ID, twoCalls))
	w.settle(p)
}

func awaitSaid(p *process, what string) {
	p.t.Helper()
	eventually(p.t, 10*time.Second, p.name+" says "+what, func() bool { return strings.Contains(p.log.String(), what) })
}
