package httpapi_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()
	for _, group := range [][]idempotencyCase{sendCases(), bodyCases(), outsideCases(), scopeCases(), endCases()} {
		for _, c := range group {
			t.Run("row "+c.rows+": "+c.name, func(t *testing.T) {
				t.Parallel()
				runCase(t, c)
			})
		}
	}
}

// play is a case under way.
type play struct {
	w        *world
	names    map[string]string
	tasks    []string
	messages int
}

func runCase(t *testing.T, c idempotencyCase) {
	w := newWorld(t, c.setup)
	p := &play{w: w, names: map[string]string{"c": w.conversation("alice"), "d": w.conversation("alice"), "e": w.conversation("carol")}}
	for i, s := range c.steps {
		if s.wait != "" {
			p.wait(s.wait)
			continue
		}
		p.step(t, i, s)
	}
	// Everything that was asked for has been worked on before it is counted.
	if c.setup.workers > 0 {
		for _, task := range p.tasks {
			if r := w.send(request{do: "GET /v1/tasks/" + task + "?wait=30s"}); r.status == http.StatusOK && !onereply.Status(r.doc.Status).Ended() {
				t.Fatalf("task %s has not ended", task)
			}
		}
	}
	if got := w.counts(); got != c.left {
		t.Errorf("left %+v (tasks, messages, keys), want %+v", got, c.left)
	}
	if calls, most := int(w.model.calls.Load()), 2*len(p.tasks); calls > most {
		t.Errorf("%d calls for %d tasks", calls, len(p.tasks))
	}
}

func (p *play) wait(what string) {
	p.w.t.Helper()
	switch what {
	case "started":
		select {
		case <-p.w.model.started:
		case <-time.After(30 * time.Second):
			p.w.t.Fatal("no call began")
		}
	case "release":
		close(p.w.model.hold)
	case "ended":
		p.w.ended(p.names["t"])
		thread := p.w.send(request{do: "GET /v1/conversations/" + p.names["c"]})
		for _, m := range thread.doc.Messages {
			if m.Role == "assistant" {
				p.names["a"] = m.ID
			}
		}
	default:
		p.w.t.Fatalf("wait for %q", what)
	}
}

func (p *play) step(t *testing.T, i int, s step) {
	t.Helper()
	q := request{do: s.do, as: s.as, key: s.key, header: s.header, body: s.body}
	if q.do == "" {
		q.do = sendDefault
	}
	if q.body == "" && !s.empty && strings.HasSuffix(q.do, "/messages") {
		q.body = hello
	}
	if q.key == nil {
		q.key = key("K")
	}
	for name, id := range p.names {
		q.do = strings.ReplaceAll(q.do, "{"+name+"}", id)
	}
	got := p.w.send(q)
	if got.status != s.want || got.code != s.code {
		t.Fatalf("step %d: %s: %d %s, want %d %s\n%s", i, q.do, got.status, got.code, s.want, s.code, got.body)
	}
	task := got.doc.Task
	switch s.task {
	case "new":
		for _, known := range p.tasks {
			if task == nil || task.ID == known {
				t.Fatalf("step %d: no new task: %s", i, got.body)
			}
		}
		if p.tasks = append(p.tasks, task.ID); len(p.tasks) == 1 {
			p.names["t"] = task.ID
		}
		if got.doc.Message != nil {
			p.messages++
			p.names["m"+strings.TrimPrefix(strconv.Itoa(p.messages), "1")] = got.doc.Message.ID
		}
	case "again":
		if task == nil || task.ID != p.tasks[0] || got.doc.Message == nil || got.doc.Message.ID != p.names["m"] {
			t.Fatalf("step %d: not the first task %s and message %s: %s", i, p.tasks[0], p.names["m"], got.body)
		}
	}
	if s.is != "" && (task == nil || task.Status != s.is) {
		t.Errorf("step %d: the task is not %s: %s", i, s.is, got.body)
	}
	if !strings.Contains(got.body, s.has) {
		t.Errorf("step %d: the answer lacks %s: %s", i, s.has, got.body)
	}
	if s.not != "" && strings.Contains(got.body, s.not) {
		t.Errorf("step %d: the answer has %s: %s", i, s.not, got.body)
	}
}
