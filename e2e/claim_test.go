//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// claimTwoAtOnce: two workers hunt for the same 200 tasks; each is worked once.
func claimTwoAtOnce(w *world) {
	w.calm()
	p := w.start("api")
	a := w.api(p)
	conversation := a.conversation()
	ids := sendMany(w, a, conversation, 200)
	w.start("work,sweep")
	w.start("work,sweep")
	l := w.ledger()
	eventually(w.t, 40*time.Second, "all are completed", func() bool {
		return l.count("SELECT count(*) FROM tasks WHERE status = 'completed'") == len(ids)
	})
	if n := l.count("SELECT count(*) FROM tasks WHERE version <> 1 OR calls_used <> 1 OR attempts_used <> 1"); n != 0 {
		w.t.Errorf("%d tasks were worked more than once", n)
	}
	if n := w.model.sim.Total(); n != len(ids) {
		w.t.Errorf("the model got %d requests for %d tasks", n, len(ids))
	}
	if n := l.count("SELECT count(DISTINCT worker) FROM attempts"); n != 2 {
		w.t.Logf("only %d of the two workers got something to do", n)
	}
	w.settle(p)
}

// sendMany sends n different messages from 16 clients at once.
func sendMany(w *world, a *api, conversation string, n int) []string {
	w.t.Helper()
	ids := make([]string, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range next {
				text := fmt.Sprintf("question %d", i)
				got, err := a.send(conversation, fmt.Sprintf("k%d", i), text, nil)
				if err != nil || got.status != http.StatusAccepted {
					w.t.Errorf("sending %d: %d %v", i, got.status, err)
					continue
				}
				ids[i] = w.note(fmt.Sprintf("k%d", i), text, got).Task.ID
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
	return ids
}

// claimCrashRightAfter: 1. a worker claims, 2. it dies before it counts a call,
// 3. another takes over when the lease is over. Nothing was sent.
func claimCrashRightAfter(w *world) {
	p := w.start("api")
	doomed := w.startAt("claim:after:kill", "work")
	task := w.ask(p, "q", nil)
	doomed.died()
	w.start("work,sweep")
	end := w.expect(p, task.ID, want{status: "completed", text: "answer to q", version: 2, attempts: 2, calls: 1, requests: 1})
	checkTakeover(w, end)
	w.settle(p)
}

// checkTakeover checks by the database's own times that the second attempt
// began when the first one's lease was over, and not much later.
func checkTakeover(w *world, t taskJSON) {
	w.t.Helper()
	if len(t.Attempts) < 2 || t.Attempts[0].Outcome != "lease_expired" {
		w.t.Fatalf("attempts %+v, want a first one that ended as lease_expired", t.Attempts)
	}
	waited := t.Attempts[1].StartedAt.Sub(t.Attempts[0].StartedAt)
	if waited < lease {
		w.t.Errorf("taken over %v after the claim, before the lease of %v could be over", waited, lease)
	}
	w.t.Logf("takeover %v after the claim; lease %v", waited, lease)
}

// claimAnswerLost: the claim is durable and the worker never hears of it. The
// task waits for its lease, and the same worker may get it again.
func claimAnswerLost(w *world) {
	p := w.startAt("claim:after:lose", everything)
	task := w.ask(p, "q", nil)
	end := w.expect(p, task.ID, want{status: "completed", text: "answer to q", version: 2, attempts: 2, calls: 1, requests: 1})
	checkTakeover(w, end)
	w.settle(p)
}

// claimTakeoverAtExpiry: a worker that is killed in a call holds its lease to
// the end and not longer.
func claimTakeoverAtExpiry(w *world) {
	p := w.start("api,sweep")
	doomed := w.start("work")
	w.model.script("q", hang("so far "), say("new"))
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	doomed.kill()
	l := w.ledger()
	leaseEnd := l.leaseUntil(task.ID)
	w.start("work")
	end := w.expect(p, task.ID, want{status: "completed", text: "new", version: 2, attempts: 2, calls: 2, requests: 2})
	late := end.Attempts[1].StartedAt.Sub(leaseEnd)
	switch {
	case late < 0:
		w.t.Errorf("taken over %v before the lease was over", -late)
	case late > sweep+3*time.Second:
		w.t.Errorf("taken over %v after the lease was over", late)
	}
	w.t.Logf("taken over %v after the lease was over", late)
	w.settle(p)
}

// claimVersionSeenByOldWorker: 1. a worker is frozen in its call, 2. another
// takes over and is in its call, 3. the first one thaws. It learns from its next
// write that the version has moved on, gives up its call and changes nothing.
func claimVersionSeenByOldWorker(w *world) {
	p := w.start("api,sweep")
	old := w.start("work")
	g := newGate()
	w.model.script("q", hang("OLD "), held(g, say("NEW")))
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	w.freezeInCall(old)
	w.start("work")
	w.model.awaitAsked("q", 2)
	a := w.api(p)
	second := a.task(task.ID)
	old.thaw()
	w.model.awaitLeft("q", 1, 15*time.Second)
	now := a.task(task.ID)
	if now.Status != "running" || now.Version != 2 || now.Worker != second.Worker {
		w.t.Errorf("after the thaw the task is %s under worker %s, want running, version 2 under %s", now, now.Worker, second.Worker)
	}
	g.open()
	w.expect(p, task.ID, want{status: "completed", text: "NEW", version: 2, attempts: 2, calls: 2, requests: 2})
	a.awaitEvent(task.ID, "fenced_out event of version 1", fencedOut(1))
	w.settle(p)
}
