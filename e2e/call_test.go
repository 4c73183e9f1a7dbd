//go:build unix

package e2e

import (
	"errors"
	"net"
	"net/http"
	"time"
)

// one runs a single task through a service of its own and compares its end.
func one(w *world, how policy, steps []step, is want, flags ...string) taskJSON {
	w.t.Helper()
	w.calm()
	w.model.script("q", steps...)
	p := w.start(everything, flags...)
	task := w.ask(p, "q", how)
	end := w.expect(p, task.ID, is)
	w.settle(p)
	return end
}

var stop = policy{"on_unknown_outcome": "stop"}

// twoCalls is the end of a task whose first call's outcome stayed unknown.
var twoCalls = want{status: "completed", text: "second", version: 2, attempts: 2, calls: 2, requests: 2}

// unknown is the end of such a task under the policy to stop.
func unknown(code string) want {
	return want{status: "failed", reason: "outcome_unknown", code: code, version: 1, attempts: 1, calls: 1, requests: 1}
}

// callRefusedBeforeSent: nobody listens at the provider's address. Nothing was
// sent, so even under stop this is no unknown outcome; the counts bound it.
func callRefusedBeforeSent(w *world) {
	w.flags = append(w.flags, "--model", modelAt("http://"+closedPort(w.t)))
	one(w, stop, nil, want{status: "failed", reason: "calls_exhausted", code: "provider_unavailable", version: 3, attempts: 3, calls: 3})
}

// callRefusedThenUp: the provider's port opens after the first refusal.
func callRefusedThenUp(w *world) {
	w.calm()
	address := closedPort(w.t)
	w.flags = append(w.flags, "--model", modelAt("http://"+address), "--backoff-base", "3s", "--backoff-max", "3s", "--max-calls", "5")
	p := w.start(everything)
	task := w.ask(p, "q", stop)
	a := w.api(p)
	a.await(task.ID, "its first call was refused", func(t taskJSON) bool { return t.Budget.Calls.Used > 0 && t.Status == "queued" })
	l, err := net.Listen("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: w.model.sim, ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	w.t.Cleanup(func() {
		if err := server.Close(); err != nil {
			w.t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			w.t.Error(err)
		}
	})
	end := a.awaitEnd(task.ID)
	if end.Status != "completed" || end.Budget.Calls.Used < 2 || len(w.model.asked("q")) != 1 {
		w.t.Errorf("%s, %d requests; want completed, one request, at least two calls", end, len(w.model.asked("q")))
	}
	if end.Error != nil {
		w.t.Errorf("a completed task shows the error %+v", end.Error)
	}
	w.settle(p)
}

func callCutBeforeFirstByte(w *world) {
	one(w, nil, []step{cutOff(""), say("second")}, twoCalls)
}

func callCutBeforeFirstByteStop(w *world) {
	one(w, stop, []step{cutOff(""), say("second")}, unknown("provider_unavailable"))
}

func callCutInTheMiddle(w *world) {
	one(w, nil, []step{cutOff("half an "), say("second")}, twoCalls)
}

func callCutInTheMiddleStop(w *world) {
	one(w, stop, []step{cutOff("half an "), say("second")}, unknown("provider_unavailable"))
}

// callEndLost: the provider has done and charged all of it, and the end mark is
// lost. What arrived looks whole and must not be saved: nobody can know that it is.
func callEndLost(w *world) {
	one(w, nil, []step{cutOff("a whole answer"), say("second")}, twoCalls)
}

func callEndLostStop(w *world) {
	one(w, stop, []step{cutOff("a whole answer"), say("second")}, unknown("provider_unavailable"))
}

// crashInCall kills the only worker while its call is open and starts another.
func crashInCall(w *world, how policy, is want) {
	p := w.start("api,sweep")
	doomed := w.start("work")
	w.model.script("q", hang("half an "), say("second"))
	task := w.ask(p, "q", how)
	w.model.awaitAsked("q", 1)
	doomed.kill()
	w.start("work")
	checkTakeover(w, w.expect(p, task.ID, is))
	w.settle(p)
}

func callCrash(w *world) { crashInCall(w, nil, twoCalls) }

// callCrashStop: whoever takes over finds a call whose outcome nobody knows, and
// the policy is to say so instead of paying twice.
func callCrashStop(w *world) {
	is := unknown("provider_unavailable")
	is.version, is.attempts = 2, 2
	crashInCall(w, stop, is)
}

// callCrashAfterCount: 1. a call is counted, 2. the worker dies before it sends,
// 3. another takes over. The count stays, and since nobody can tell 2 from a
// crash in the call, it is treated as one.
func callCrashAfterCount(w *world) {
	p := w.start("api,sweep")
	doomed := w.startAt("count:after:kill", "work")
	task := w.ask(p, "q", nil)
	doomed.died()
	if n := len(w.model.asked("q")); n != 0 {
		w.t.Errorf("%d requests left before the count was answered", n)
	}
	w.start("work")
	w.expect(p, task.ID, want{status: "completed", text: "answer to q", version: 2, attempts: 2, calls: 2, requests: 1})
	w.settle(p)
}

func callHang(w *world) {
	one(w, nil, []step{hang("half an "), say("second")}, twoCalls, "--call-timeout", "1s")
	w.model.awaitLeft("q", 1, 5*time.Second)
}

func callHangStop(w *world) {
	one(w, stop, []step{hang(""), say("second")}, unknown("timeout"), "--call-timeout", "1s")
	w.model.awaitLeft("q", 1, 5*time.Second)
}

// callNoHiddenRetries: 429 and 500 are what SDKs and transports like to repeat by
// themselves. Every physical request has to have its count.
func callNoHiddenRetries(w *world) {
	w.calm()
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	w.model.script("limited", refuse(http.StatusTooManyRequests, "rate_limit_exceeded", ""))
	w.model.script("broken", refuse(http.StatusInternalServerError, "server_error", ""))
	w.model.script("busy", refuse(http.StatusServiceUnavailable, "overloaded", "1"))
	w.model.script("quota", refuse(http.StatusTooManyRequests, "insufficient_quota", ""))
	limited := w.send(a, conversation, "k1", "limited", nil)
	broken := w.send(a, conversation, "k2", "broken", nil)
	busy := w.send(a, conversation, "k3", "busy", nil)
	quota := w.send(a, conversation, "k4", "quota", nil)
	spent := want{status: "failed", reason: "calls_exhausted", version: 3, attempts: 3, calls: 3, requests: 3}
	for _, c := range []struct {
		id, code string
	}{{limited.ID, "rate_limited"}, {broken.ID, "provider_unavailable"}, {busy.ID, "provider_unavailable"}} {
		is := spent
		is.code = c.code
		w.expect(p, c.id, is)
	}
	w.expect(p, quota.ID, want{status: "failed", reason: "permanent", code: "insufficient_quota", version: 1, attempts: 1, calls: 1, requests: 1})
	w.settle(p)
}
