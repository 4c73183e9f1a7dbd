//go:build unix

package e2e

import (
	"net/http"
	"time"
)

// killedInCalls loses n workers in the middle of their calls, one after another.
func killedInCalls(w *world, n int, flags ...string) (*process, taskJSON) {
	w.t.Helper()
	w.flags = append(w.flags, flags...)
	p := w.start("api,sweep")
	w.model.script("q", hang("half an "))
	task := w.ask(p, "q", nil)
	for i := range n {
		worker := w.start("work")
		w.model.awaitAsked("q", i+1)
		worker.kill()
	}
	w.start("work")
	return p, task
}

// budgetTakeovers: three workers die in three calls. The fourth may not make
// another: no takeover gives calls back.
func budgetTakeovers(w *world) {
	p, task := killedInCalls(w, 3)
	w.expect(p, task.ID, want{status: "failed", reason: "calls_exhausted", code: "provider_unavailable", version: 4, attempts: 4, calls: 3, requests: 3})
	w.settle(p)
}

func budgetAttempts(w *world) {
	p, task := killedInCalls(w, 2, "--max-attempts", "2")
	w.expect(p, task.ID, want{status: "failed", reason: "attempts_exhausted", code: "attempts_exhausted", version: 3, attempts: 2, calls: 2, requests: 2})
	w.settle(p)
}

// budgetRestartAndResubmission: 1. the first call fails and the task waits,
// 2. everything is killed, 3. a new process gets the same press again. Neither
// gives the task a fresh allowance.
func budgetRestartAndResubmission(w *world) {
	w.calm()
	w.flags = append(w.flags, "--backoff-base", "2s", "--backoff-max", "2s")
	w.model.script("q", refuse(http.StatusInternalServerError, "server_error", "2"))
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	task := w.send(a, conversation, "k", "q", nil)
	a.await(task.ID, "it waits after its first call", func(t taskJSON) bool { return t.Status == "queued" && t.Budget.Calls.Used == 1 })
	p.kill()
	p = w.start(everything)
	again := w.replay(w.api(p), conversation, "k", "q", nil, task.ID)
	if again.Budget.Calls.Used < 1 || again.Budget.Attempts.Used < 1 {
		w.t.Errorf("the counts were given back: %s", again)
	}
	is := want{status: "failed", reason: "calls_exhausted", code: "provider_unavailable", version: 3, attempts: 3, calls: 3, requests: 3}
	w.expect(p, task.ID, is)
	w.replay(w.api(p), conversation, "k", "q", nil, task.ID)
	w.expect(p, task.ID, is)
	w.settle(p)
}

// soonOver is a deadline in the near future, and what waits until it has passed.
func soonOver(w *world, d time.Duration) (policy, func()) {
	deadline := time.Now().Add(d)
	return policy{"deadline": deadline.UTC().Format(time.RFC3339Nano)}, func() {
		w.t.Helper()
		eventually(w.t, d+5*time.Second, "the deadline has passed", func() bool { return time.Now().After(deadline.Add(50 * time.Millisecond)) })
	}
}

// budgetDeadlineQueued: no worker lives until the deadline has passed. The next
// one ends the task without an attempt.
func budgetDeadlineQueued(w *world) {
	w.calm()
	p := w.start("api,sweep")
	how, over := soonOver(w, 700*time.Millisecond)
	task := w.ask(p, "q", how)
	over()
	w.start("work")
	w.expect(p, task.ID, want{status: "failed", reason: "deadline_exceeded", code: "deadline_exceeded", version: 1})
	w.settle(p)
}

// budgetDeadlineBackoff: a wait that would outlast the deadline is not begun;
// and when the deadline passes in a wait that nobody is there to end, the next
// worker ends the task, with the cause of the wait.
func budgetDeadlineBackoff(w *world) {
	w.calm()
	p := w.start("api,sweep")
	worker := w.start("work")
	w.model.script("too-long", refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "60"))
	w.model.script("q", refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "6"))
	is := want{status: "failed", reason: "deadline_exceeded", code: "rate_limited", version: 1, attempts: 1, calls: 1, requests: 1}
	how, _ := soonOver(w, 40*time.Second)
	w.expect(p, w.ask(p, "too-long", how).ID, is)

	how, over := soonOver(w, 12*time.Second)
	task := w.ask(p, "q", how)
	w.api(p).await(task.ID, "it waits", func(t taskJSON) bool { return t.Status == "queued" && t.Budget.Calls.Used == 1 })
	worker.kill()
	over()
	w.start("work")
	is.version = 2 // claimed once more, to be ended
	w.expect(p, task.ID, is)
	w.settle(p)
}

// budgetDeadlineCall: the deadline passes while the provider is silent. The call
// is given up then, and the task ends.
func budgetDeadlineCall(w *world) {
	p := w.start(everything)
	w.model.script("q", hang("half an "))
	how, over := soonOver(w, 4*time.Second)
	task := w.ask(p, "q", how)
	w.model.awaitAsked("q", 1)
	over()
	w.model.awaitLeft("q", 1, 5*time.Second)
	end := w.api(p).awaitEnd(task.ID)
	if end.Status != "failed" || end.Reason != "deadline_exceeded" || end.Budget.Calls.Used != 1 || len(w.model.asked("q")) != 1 {
		w.t.Errorf("the task ended as %s, want failed deadline_exceeded after one call", end)
	}
	w.settle(p)
}
