//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// acceptCrashBefore: 1. the answer is there, 2. the worker writes it and dies
// with the transaction open. Nothing of it is left, and the call is one whose
// outcome is unknown.
func acceptCrashBefore(w *world) {
	p := w.start("api,sweep")
	doomed := w.startAt("accept:before:kill", "work")
	w.model.script("q", say("first"), say("second"))
	task := w.ask(p, "q", nil)
	doomed.died()
	if now := w.api(p).task(task.ID); now.Status != "running" || now.text() != "" {
		w.t.Errorf("after a crash before the commit the task is %s with %q", now, now.text())
	}
	w.start("work")
	checkTakeover(w, w.expect(p, task.ID, twoCalls))
	w.settle(p)
}

// acceptCrashDuring: the process dies while its COMMIT is on its way. Either it
// was durable or it was not; in both cases there is one response.
func acceptCrashDuring(w *world) {
	p := w.start("api,sweep")
	doomed := w.startAt("accept:during:kill", "work")
	w.model.script("q", say("first"), say("second"))
	task := w.ask(p, "q", nil)
	doomed.died()
	w.start("work")
	end := w.api(p).awaitEnd(task.ID)
	w.t.Logf("the commit was durable: %v", end.Version == 1)
	if end.Version == 1 {
		w.expect(p, task.ID, want{status: "completed", text: "first", version: 1, attempts: 1, calls: 1, requests: 1})
	} else {
		w.expect(p, task.ID, twoCalls)
	}
	w.settle(p)
}

// acceptAnswerLost: the response is saved and the acknowledgement is lost inside
// the process. The task is read before anything is generated again (P11).
func acceptAnswerLost(w *world) {
	w.calm()
	p := w.startAt("accept:after:lose", everything)
	w.model.script("q", say("first"), say("second"))
	task := w.ask(p, "q", nil)
	w.expect(p, task.ID, want{status: "completed", text: "first", version: 1, attempts: 1, calls: 1, requests: 1})
	for _, e := range w.api(p).timeline(task.ID) {
		if e.Type == "fenced_out" {
			w.t.Errorf("the worker took its own answer for a late one: %+v", e)
		}
	}
	w.settle(p)
}

// acceptCrashAfter: the response is saved and the worker dies before it can tell
// anyone. Readers at another process get it all the same.
func acceptCrashAfter(w *world) {
	w.calm()
	p := w.start("api,sweep")
	doomed := w.startAt("accept:after:kill", "work")
	w.model.script("q", say("first"), say("second"))
	task := w.ask(p, "q", nil)
	doomed.died()
	is := want{status: "completed", text: "first", version: 1, attempts: 1, calls: 1, requests: 1}
	w.expect(p, task.ID, is)
	w.start("work")
	other := w.ask(p, "another", nil) // the new worker has looked round once it has done this
	w.expect(p, other.ID, want{status: "completed", text: "answer to another", version: 1, attempts: 1, calls: 1, requests: 1})
	w.expect(p, task.ID, is)
	w.settle(p)
}

// zombie puts a task where an old worker is frozen with the end of its call in
// its hands, one step before it writes it, and a fresh worker has taken over and
// is in a call of its own. The gate lets the model answer that one.
func zombie(w *world, oldEnd step) (p, old *process, id string, fresh *gate) {
	w.t.Helper()
	fresh = newGate()
	p = w.start("api,sweep")
	old = w.startAt("tx:before:stop", "work")
	w.model.script("q", oldEnd, held(fresh, say("NEW")))
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	w.start("work")
	w.model.awaitAsked("q", 2)
	return p, old, task.ID, fresh
}

// newWins is the end of a task whose old worker came too late.
var newWins = want{status: "completed", text: "NEW", version: 2, attempts: 2, calls: 2, requests: 2}

// checkLate checks that a late worker left nothing but the note that it was late.
func checkLate(w *world, p *process, end taskJSON) {
	w.t.Helper()
	if got := end.Attempts[0].Outcome; got != "lease_expired" {
		w.t.Errorf("the late attempt's outcome is %s, want lease_expired", got)
	}
	a := w.api(p)
	a.awaitEvent(end.ID, "fenced_out event of version 1", fencedOut(1))
	for _, e := range a.timeline(end.ID) {
		if slices.Contains([]string{"retried", "released", "failed"}, e.Type) {
			w.t.Errorf("the late worker's %s got through: %+v", e.Type, e)
		}
	}
}

// acceptZombieSlotEmpty: the old worker hands in its answer after the takeover,
// while the new one is still at work and the slot is empty.
func acceptZombieSlotEmpty(w *world) {
	p, old, id, fresh := zombie(w, say("OLD"))
	old.thaw()
	a := w.api(p)
	a.awaitEvent(id, "fenced_out event of version 1", fencedOut(1))
	if now := a.task(id); now.Status != "running" || now.Version != 2 || now.text() != "" || now.Error != nil {
		w.t.Errorf("after the late answer the task is %s with %q", now, now.text())
	}
	fresh.open()
	checkLate(w, p, w.expect(p, id, newWins))
	w.settle(p)
}

// acceptZombieSlotFilled: it hands it in when the slot has been filled.
func acceptZombieSlotFilled(w *world) {
	p, old, id, fresh := zombie(w, say("OLD"))
	fresh.open()
	w.expect(p, id, newWins)
	old.thaw()
	w.api(p).awaitEvent(id, "fenced_out event of version 1", fencedOut(1))
	checkLate(w, p, w.expect(p, id, newWins))
	w.settle(p)
}

// acceptLeaseExpiredInQueue: 1. another program holds the file's write lock, or
// the task's row, 2. the answer arrives and its accept waits, 3. the lease ends, 4. the lock is
// let go. The clock is read after the lock is held, so the accept is too late.
func acceptLeaseExpiredInQueue(w *world) {
	p := w.start(everything)
	g := newGate()
	w.model.script("q", held(g, say("first")), say("second"))
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	release := w.hold(task.ID)
	l := w.ledger()
	leaseEnd := l.leaseUntil(task.ID)
	g.open()
	eventually(w.t, 10*time.Second, "the lease is over", func() bool { return time.Now().After(leaseEnd.Add(50 * time.Millisecond)) })
	release()
	end := w.expect(p, task.ID, twoCalls)
	w.api(p).awaitEvent(end.ID, "fenced_out event of version 1", fencedOut(1))
	w.settle(p)
}

// acceptCancelAtTheSameMoment: a person presses Stop as the answer comes in. One
// of them wins and the other is told so.
func acceptCancelAtTheSameMoment(w *world) {
	w.calm()
	p := w.start("api,sweep")
	w.start("work")
	a := w.api(p)
	conversation := a.conversation()
	const tasks = 12
	gates := make([]*gate, tasks)
	ids := make([]string, tasks)
	for i := range ids {
		gates[i] = newGate()
		text := fmt.Sprintf("q%d", i)
		w.model.script(text, held(gates[i], say("answer")))
		ids[i] = w.send(a, conversation, text, text, nil).ID
		w.model.awaitAsked(text, 1)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := map[int]int{}
	for i, id := range ids {
		wg.Go(gates[i].open)
		wg.Go(func() {
			got, err := a.cancel(id)
			if err != nil || got.status != http.StatusOK && got.status != http.StatusConflict {
				w.t.Errorf("cancel: %d %v %s", got.status, err, got.body)
			}
			end := a.awaitEnd(id)
			mu.Lock()
			won[got.status]++
			mu.Unlock()
			if (got.status == http.StatusOK) != (end.Status == "cancelled") || (got.status == http.StatusConflict) != (end.Status == "completed") {
				w.t.Errorf("cancel answered %d and the task is %s", got.status, end)
			}
		})
	}
	wg.Wait()
	w.t.Logf("cancelled %d, completed %d", won[http.StatusOK], won[http.StatusConflict])
	w.settle(p)
}

// acceptBeforeCancel fixes the order: the accept holds its transaction open when
// the cancel arrives, which has to wait and then learns that it is too late.
func acceptBeforeCancel(w *world) {
	w.calm()
	p := w.start("api,sweep")
	w.startAt("accept:before:1500ms", "work")
	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	w.awaitLocked()
	got, err := w.api(p).cancel(task.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	if got.status != http.StatusConflict {
		w.t.Errorf("cancel answered %d while the accept held the lock, want 409", got.status)
	}
	w.expect(p, task.ID, want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}
