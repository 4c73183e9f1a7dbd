//go:build unix

package e2e

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// submitCrashBeforeCommit: 1. the API writes message, task and key, 2. it dies
// with the transaction open, 3. the client, who heard nothing, presses again at
// a new process. The first press has left nothing.
func submitCrashBeforeCommit(w *world) {
	w.calm()
	doomed := w.startAt("submit:before:kill", "api")
	a := w.api(doomed)
	conversation := a.conversation()
	if got, err := a.send(conversation, "k", "q", nil); err == nil {
		w.t.Fatalf("an API that died before its commit answered %d", got.status)
	}
	doomed.died()
	l := w.ledger()
	if n := l.count("SELECT count(*) FROM tasks") + l.count("SELECT count(*) FROM messages") + l.count("SELECT count(*) FROM submissions"); n != 0 {
		w.t.Errorf("%d rows were left by a transaction that never committed", n)
	}
	p := w.start(everything)
	task := w.send(w.api(p), conversation, "k", "q", nil)
	w.expect(p, task.ID, want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}

// submitCrashAfterCommit: the same, but the commit is durable and only the
// answer was never written. The second press finds the first one's task.
func submitCrashAfterCommit(w *world) {
	w.calm()
	doomed := w.startAt("submit:after:kill", "api")
	a := w.api(doomed)
	conversation := a.conversation()
	if got, err := a.send(conversation, "k", "q", nil); err == nil {
		w.t.Fatalf("an API that died before its answer answered %d", got.status)
	}
	doomed.died()
	id := w.ledger().text("SELECT id FROM tasks")
	if id == "" {
		w.t.Fatal("the commit was lost")
	}
	p := w.start(everything)
	w.replay(w.api(p), conversation, "k", "q", nil, id)
	w.follow(id)
	w.expect(p, id, want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}

// submitCommitAnswerLost: the database commits and its answer does not arrive
// inside the process. The engine reads the key again (P11) and answers as if
// nothing had happened.
func submitCommitAnswerLost(w *world) {
	w.calm()
	p := w.startAt("submit:after:lose", everything)
	task := w.ask(p, "q", nil)
	w.expect(p, task.ID, want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}

// submitAnswerLost: the service answers and the network eats it, twice.
func submitAnswerLost(w *world) {
	w.calm()
	p := w.start(everything)
	direct := w.api(p)
	conversation := direct.conversation()
	between := startProxy(w.t, strings.TrimPrefix(p.url, "http://"))
	lossy := newAPI(w.t, between.url())
	between.loseAnswers(true)
	for range 2 {
		if got, err := lossy.send(conversation, "k", "q", nil); err == nil {
			w.t.Fatalf("a lost answer arrived: %d", got.status)
		}
	}
	between.loseAnswers(false)
	id := w.ledger().text("SELECT id FROM tasks")
	w.replay(lossy, conversation, "k", "q", nil, id)
	if n := between.losses(); n != 2 {
		w.t.Errorf("%d answers were lost, want 2", n)
	}
	w.follow(id)
	w.expect(p, id, want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}

// press sends one message n times at once, round the given APIs, and returns the
// one task they all have to get.
func press(w *world, n int, conversation string, apis ...*api) string {
	var wg sync.WaitGroup
	var created, replayed atomic.Int32
	var ids sync.Map
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			got, err := apis[i%len(apis)].send(conversation, "k", "q", nil)
			if err != nil {
				w.t.Errorf("press %d: %v", i, err)
				return
			}
			switch {
			case got.status == http.StatusAccepted && !got.replayed():
				created.Add(1)
			case got.status == http.StatusOK && got.replayed():
				replayed.Add(1)
			default:
				w.t.Errorf("press %d: %d replayed=%v %s", i, got.status, got.replayed(), got.body)
				return
			}
			ids.Store(w.note("k", "q", got).Task.ID, true)
		})
	}
	close(start)
	wg.Wait()
	if created.Load() != 1 || int(replayed.Load()) != n-1 {
		w.t.Errorf("%d presses created and %d replayed, want 1 and %d", created.Load(), replayed.Load(), n-1)
	}
	id, distinct := "", 0
	ids.Range(func(k, _ any) bool { id = k.(string); distinct++; return true })
	if distinct != 1 {
		w.t.Errorf("the presses got %d different tasks", distinct)
	}
	return id
}

func submitFiftyAtOnce(w *world) {
	w.calm()
	p := w.start(everything)
	a := w.api(p)
	id := press(w, 50, a.conversation(), a)
	w.follow(id)
	w.expect(p, id, want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}

func submitOnTwoProcesses(w *world) {
	w.calm()
	first, second := w.start("api"), w.start("api")
	w.start("work,sweep")
	a := w.api(first)
	id := press(w, 40, a.conversation(), a, w.api(second))
	w.follow(id)
	w.expect(second, id, want{status: "completed", text: "answer to q", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(second)
}
