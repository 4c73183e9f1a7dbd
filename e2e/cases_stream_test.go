//go:build unix

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// part reads a stream from last on until it has brought so much, cuts it, and
// gives the text, the last id and the first event. Until empty reads to the end.
func part(w *world, p *process, id, last, until string) (text, at string, first seen) {
	w.t.Helper()
	events, status, cut := w.api(p).rawEvents(id, last)
	if status != http.StatusOK {
		w.t.Fatalf("stream after %q: %d", last, status)
	}
	defer cut()
	for n := 0; !strings.Contains(text, until) || until == ""; n++ {
		e, err := events.Next()
		if err != nil {
			if until == "" {
				return text, at, first
			}
			w.t.Fatalf("stream after %q ended before %q: %v", last, until, err)
		}
		var body struct{ Text string }
		if err := json.Unmarshal([]byte(e.Data), &body); err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			first = seen{e.Type, body.Text}
		}
		if e.Type == "delta" || e.Type == "reset" {
			text += body.Text
		}
		at = e.ID
	}
	return text, at, first
}

// seen is the first event of a part.
type seen struct{ kind, text string }

func caseResume(w *world) {
	w.calm()
	p := w.start("api,sweep")
	w.start("work")
	w.model.script("other", cutOff("x"), say("y"))
	other := w.ask(p, "other", nil)
	w.expect(p, other.ID, want{status: "completed", text: "y", version: 2, attempts: 2, calls: 2, requests: 2})
	w.model.script("q", paced(100, 30*time.Millisecond))
	task := w.ask(p, "q", nil)

	joined, last, _ := part(w, p, task.ID, "", "t39 ")
	_, _, cut := w.api(p).rawEvents(task.ID, last) // cut before any event
	cut()
	more, last, first := part(w, p, task.ID, last, "t55 ")
	joined += more
	if first.kind != "delta" {
		w.t.Errorf("a resumed stream began with %s", first.kind)
	}
	p.kill()
	p = w.start("api,sweep")
	more, last, first = part(w, p, task.ID, last, "t70 ")
	joined += more
	if first.kind != "delta" {
		w.t.Errorf("a stream resumed at a new process began with %s", first.kind)
	}
	for _, strange := range []string{"999", "1.99999", "2.1", "nonsense"} { // 2.1 is of the other task's second attempt
		_, _, first := part(w, p, task.ID, strange, "t0 ")
		if first.kind != "reset" || !strings.HasPrefix(numbered(100), first.text) || first.text == "" {
			w.t.Errorf("after the unknown id %q the stream began with %s %q", strange, first.kind, first.text)
		}
	}
	more, end, _ := part(w, p, task.ID, last, "")
	joined += more
	if end != "end" || !strings.HasPrefix(numbered(100), joined) || len(joined) < len(numbered(90)) {
		w.t.Errorf("the parts join to %q and end with id %q", joined, end)
	}
	w.expect(p, task.ID, want{status: "completed", text: numbered(100), version: 1, attempts: 1, calls: 1, requests: 1})
	for id, begins := range map[string]seen{"": {kind: "completed"}, last: {kind: "completed"}, "999": {kind: "reset"}} {
		if _, at, first := part(w, p, task.ID, id, ""); at != "end" || first != begins {
			w.t.Errorf("after completion, from %q, the stream began with %v and ended at %q, want %v first", id, first, at, begins)
		}
	}
	if _, status, _ := w.api(p).rawEvents(task.ID, "end"); status != http.StatusNoContent {
		w.t.Errorf("a reader that has the end got %d, want 204", status)
	}
	w.settle(p)
}
