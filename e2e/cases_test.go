//go:build unix

package e2e

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// cases are public bug reports about systems like this one, each tried with
// real processes and held to the exact values. Case 3, a key or a task of
// another workspace, needs two workspaces and is in httpapi/cases_test.go.
var cases = []struct {
	name string
	test func(*world)
}{
	{"1: the key is enforced at the write", caseKeyEnforced},
	{"5a: a worker never sees a task before its commit", caseDelayedCommit},
	{"5b: a rolled back submission leaves nothing and its key is free", caseRolledBack},
	{"5c: 200 submissions under load", caseUnderLoad},
	{"9: an old attempt's late answer", caseLateAnswer},
	{"11: an old attempt's late failure", caseLateFailure},
	{"13: running without a lease or a worker", caseOrphans},
	{"33: a stream is resumed at the right place", caseResume},
	{"35a: Stop while no worker runs", caseStopQueued},
	{"35b: Stop in the middle of the stream", caseStopMidStream},
	{"35c: Stop at another API process", caseStopElsewhere},
	{"35d: closing the tab stops nothing", caseTabClosed},
	{"39: a conversation is deleted while it is answered", caseDelete},
}

func TestCase(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(newWorld(t))
		})
	}
}

// after waits until so much time has passed since a moment: for the cases that
// say "again after a second", where there is nothing else to wait for.
func after(w *world, since time.Time, d time.Duration) {
	w.t.Helper()
	eventually(w.t, d+5*time.Second, "time has passed", func() bool { return time.Since(since) >= d })
}

var once = want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1}

func caseKeyEnforced(w *world) {
	w.calm()
	p := w.start(everything)
	conversation := w.api(p).conversation()
	between := startProxy(w.t, strings.TrimPrefix(p.url, "http://"))
	lossy := newAPI(w.t, between.url())
	between.loseAnswers(true)
	began := time.Now()
	if got, err := lossy.send(conversation, "K1", "q", nil); err == nil {
		w.t.Fatalf("a lost answer arrived: %d", got.status)
	}
	between.loseAnswers(false)
	id := w.ledger().text("SELECT id FROM tasks")
	messages := map[string]bool{}
	again := func(p *process) {
		w.t.Helper()
		got, err := w.api(p).send(conversation, "K1", "q", nil)
		if err != nil || got.status != http.StatusOK || !got.replayed() || got.header.Get("Location") != "/v1/tasks/"+id {
			w.t.Fatalf("again: %d replayed=%v Location %q %v", got.status, got.replayed(), got.header.Get("Location"), err)
		}
		messages[w.note("K1", "q", got).Message.ID] = true
	}
	again(p)
	w.follow(id)
	after(w, began, time.Second)
	again(p)
	w.expect(p, id, once)
	again(p)
	p.kill()
	p = w.start(everything)
	again(p)
	after(w, began, 10*time.Second)
	again(p)
	if len(messages) != 1 {
		w.t.Errorf("the presses got %d message ids", len(messages))
	}
	roles := []string{}
	for _, m := range w.api(p).messages(conversation) {
		roles = append(roles, m.Role)
	}
	if !slices.Equal(roles, []string{"user", "assistant"}) {
		w.t.Errorf("the conversation lists %v", roles)
	}
	w.expect(p, id, once)
	w.settle(p)
}

func caseDelayedCommit(w *world) {
	w.calm()
	p := w.startAt("submit:before:3s", "api")
	w.start("work,sweep")
	a := w.api(p)
	conversation := a.conversation()
	type result struct {
		got answer
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := a.send(conversation, "K1", "q", nil)
		done <- result{got, err}
	}()
	w.awaitLocked()
	locked, l := time.Now(), w.ledger()
	eventually(w.t, 10*time.Second, "two of the three seconds are over", func() bool {
		if n := l.count("SELECT count(*) FROM tasks") + w.model.sim.Total(); n != 0 {
			w.t.Fatalf("%d tasks or requests before the commit", n)
		}
		return time.Since(locked) > 2*time.Second
	})
	r := <-done
	if r.err != nil || r.got.status != http.StatusAccepted {
		w.t.Fatalf("the delayed press: %d %v %s", r.got.status, r.err, r.got.body)
	}
	id := w.note("K1", "q", r.got).Task.ID
	w.follow(id)
	w.expect(p, id, once)
	w.settle(p)
}

func caseRolledBack(w *world) {
	w.troubled = true
	w.calm()
	p := w.startAt("submit:before:fail", "api")
	w.start("work,sweep")
	a := w.api(p)
	conversation := a.conversation()
	got, err := a.send(conversation, "K1", "q", nil)
	if err != nil || got.status < 500 {
		w.t.Fatalf("a rolled back press: %d %v", got.status, err)
	}
	l := w.ledger()
	if n := l.count("SELECT count(*) FROM tasks") + l.count("SELECT count(*) FROM messages") + l.count("SELECT count(*) FROM submissions WHERE task_id <> ''") + w.model.sim.Total(); n != 0 {
		w.t.Errorf("%d rows or requests were left after a rollback", n)
	}
	task := w.send(a, conversation, "K1", "q", nil)
	w.expect(p, task.ID, once)
	w.settle(p)
}

func caseUnderLoad(w *world) {
	w.calm()
	first, second := w.start(everything), w.start(everything)
	a := w.api(first)
	ids := sendMany(w, a, a.conversation(), 200)
	l := w.ledger()
	eventually(w.t, 40*time.Second, "all have ended", func() bool { return l.inFlight() == 0 })
	if n := l.count("SELECT count(*) FROM tasks WHERE status = 'completed' AND calls_used = 1"); n != len(ids) {
		w.t.Errorf("%d of %d tasks completed with one call", n, len(ids))
	}
	w.settle(second)
}

// caseLateAnswer: the processes cannot share a worker's name, which is minted by
// each; that the name decides nothing is tried in engine's own tests.
func caseLateAnswer(w *world) {
	p, old, id, fresh := zombie(w, say("OLD"))
	old.thaw()
	a := w.api(p)
	late := a.awaitEvent(id, "fenced_out event of version 1", fencedOut(1))
	if late.Why != "taken_over" {
		w.t.Errorf("the late answer was refused as %q, want taken_over", late.Why)
	}
	if now := a.task(id); now.Status != "running" || now.Version != 2 {
		w.t.Errorf("after the late answer the task is %s", now)
	}
	fresh.open()
	checkLate(w, p, w.expect(p, id, newWins))
	w.settle(p)
}

func caseLateFailure(w *world) {
	p, old, id, fresh := zombie(w, refuse(http.StatusInternalServerError, "server_error", ""))
	old.thaw()
	a := w.api(p)
	a.awaitEvent(id, "fenced_out event of version 1", fencedOut(1))
	now := a.task(id)
	if now.Status != "running" || now.Version != 2 || now.Error != nil || !now.RunAt.IsZero() {
		w.t.Errorf("after the late failure the task is %s, run_at %v", now, now.RunAt)
	}
	fresh.open()
	end := w.expect(p, id, newWins)
	if end.Error != nil {
		w.t.Errorf("the completed task shows the error %+v", end.Error)
	}
	checkLate(w, p, end)
	w.settle(p)
}

// caseOrphans plants what a restored backup may hold: running tasks of workers
// that do not exist, without a lease or with one of long ago, with and without a
// record of the attempt, and one that has used all its calls.
func caseOrphans(w *world) {
	p := w.start("api,sweep")
	noLease, longPast, spent := w.ask(p, "no-lease", nil), w.ask(p, "long-past", nil), w.ask(p, "spent", nil)
	none, past := "0", "1000"
	if w.server != nil { // whose schema refuses a running task without a lease
		none, past = "to_timestamp(0)", "to_timestamp(1)"
	}
	w.plant("UPDATE tasks SET status = 'running', version = 1, attempt = 'gone', worker = 'gone', attempts_used = 1, lease_until = CASE id WHEN ? THEN "+none+" ELSE "+past+" END", noLease.ID)
	w.plant("INSERT INTO attempts (task_id, version, attempt, worker, started_at) SELECT id, 1, 'gone', 'gone', "+past+" FROM tasks WHERE id <> ?", noLease.ID)
	w.plant("UPDATE tasks SET calls_used = calls_max WHERE id = ?", spent.ID)
	for number := range 3 {
		w.plant("INSERT INTO calls (task_id, number, version, attempt, counted_at, closed_at, class) VALUES (?, ?, 1, 'gone', "+past+", "+past+", 'unknown')", spent.ID, number+1)
	}
	planted := time.Now()
	w.start("work")
	for text, id := range map[string]string{"no-lease": noLease.ID, "long-past": longPast.ID} {
		w.expect(p, id, want{status: "completed", text: "answer to " + text, version: 2, attempts: 2, calls: 1, requests: 1})
		if late := w.ledger().claimedAt(id, 2).Sub(planted); late > lease+sweep+3*time.Second {
			w.t.Errorf("%s was picked up after %v", text, late)
		}
	}
	w.expect(p, spent.ID, want{status: "failed", reason: "calls_exhausted", code: "provider_unavailable", version: 2, attempts: 2, calls: 3})
	out, err := exec.Command(binary(w.t, false), "tasks", "list", "--status", "running", "--server", p.url).CombinedOutput()
	if err != nil || strings.Contains(string(out), noLease.ID) || strings.Contains(string(out), longPast.ID) {
		w.t.Errorf("tasks list --status running: %v\n%s", err, out)
	}
	w.settle(p)
}
