//go:build unix

package e2e

import (
	"net/http"
	"time"
)

func mustCancel(w *world, p *process, id string) time.Time {
	w.t.Helper()
	got, err := w.api(p).cancel(id)
	if err != nil || got.status != http.StatusOK {
		w.t.Fatalf("cancel: %d %v %s", got.status, err, got.body)
	}
	return time.Now()
}

func caseStopQueued(w *world) {
	w.calm()
	p := w.start("api,sweep")
	task := w.ask(p, "q", nil)
	mustCancel(w, p, task.ID)
	mustCancel(w, p, task.ID) // again is no error
	is := want{status: "cancelled"}
	w.expect(p, task.ID, is)
	w.start("work")
	other := w.ask(p, "another", nil)
	w.expect(p, other.ID, want{status: "completed", text: "answer to another", version: 1, attempts: 1, calls: 1, requests: 1})
	w.expect(p, task.ID, is)
	w.settle(p)
}

// stopMidStream presses Stop at one process while another one streams.
func stopMidStream(w *world, streams, stops *process) {
	w.t.Helper()
	w.model.script("q", hang("so far "))
	task := w.ask(streams, "q", nil)
	a := w.api(streams)
	if text, _, _ := part(w, streams, task.ID, "", "far"); text != "so far " {
		w.t.Errorf("streamed %q", text)
	}
	stopped := mustCancel(w, stops, task.ID)
	w.model.awaitLeft("q", 1, 2*time.Second)
	w.t.Logf("the model saw the disconnect %v after the answer to Stop", time.Since(stopped).Round(time.Millisecond))
	end := w.expect(streams, task.ID, want{status: "cancelled", version: 1, attempts: 1, calls: 1, requests: 1})
	if took := end.EndedAt.Sub(stopped); took > 2*time.Second {
		w.t.Errorf("cancelled %v after Stop", took)
	}
	if end.Attempts[0].Outcome != "cancelled" {
		w.t.Errorf("the attempt's outcome is %s", end.Attempts[0].Outcome)
	}
	if got := a.messages(w.ledger().text("SELECT conversation_id FROM messages")); len(got) != 1 {
		w.t.Errorf("the conversation has %d messages after Stop, want the question alone", len(got))
	}
	w.settle(streams)
}

func caseStopMidStream(w *world) {
	w.calm()
	p := w.start(everything)
	stopMidStream(w, p, p)
}

func caseStopElsewhere(w *world) {
	w.calm()
	first := w.start("api,sweep")
	w.start("work")
	stopMidStream(w, first, w.start("api"))
}

func caseTabClosed(w *world) {
	w.calm()
	p := w.start(everything)
	g := newGate()
	w.model.script("q", held(g, say("answer to q")))
	a := w.api(p)
	got, err := a.send(a.conversation(), "k", "q", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	id := w.note("k", "q", got).Task.ID
	_, _, leave := a.rawEvents(id, "")
	w.model.awaitAsked("q", 1)
	leave()
	g.open()
	w.expect(p, id, once)
	w.settle(p)
}

func caseDelete(w *world) {
	w.calm()
	p := w.start(everything)
	a := w.api(p)
	doomed, other := a.conversation(), a.conversation()
	g := newGate()
	w.model.script("doomed", hang("so far "))
	w.model.script("other", held(g, say("fine")))
	gone := w.send(a, doomed, "k1", "doomed", nil)
	kept := w.send(a, other, "k2", "other", nil)
	part(w, p, gone.ID, "", "far")
	w.model.awaitAsked("other", 1)
	a.must(http.StatusNoContent, "DELETE", "/v1/conversations/"+doomed, "", nil)
	w.deleted = 1
	a.must(http.StatusNotFound, "DELETE", "/v1/conversations/"+doomed, "", nil)
	w.model.awaitLeft("doomed", 1, 2*time.Second)
	w.expect(p, gone.ID, want{status: "cancelled", version: 1, attempts: 1, calls: 1, requests: 1})
	g.open()
	w.expect(p, kept.ID, want{status: "completed", text: "fine", version: 1, attempts: 1, calls: 1, requests: 1})
	a.must(http.StatusNotFound, "GET", "/v1/conversations/"+doomed, "", nil)
	if got := a.messages(other); len(got) != 2 {
		w.t.Errorf("the other conversation has %d messages", len(got))
	}
	w.settle(p)
	a.must(http.StatusNotFound, "GET", "/v1/conversations/"+doomed, "", nil)
}
