package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply/httpapi"
	"github.com/onereply/onereply/internal/sse"
)

// reader is one open stream.
type reader struct {
	t      *testing.T
	status int
	header http.Header
	in     *sse.Reader
	leave  func()
}

// follow opens a task's stream; last is the Last-Event-ID header.
func (w *world) follow(task, last string) *reader {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+"/v1/tasks/"+task+"/events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := w.server.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	leave := func() {
		cancel()
		_ = answer.Body.Close() // already cut by the line above
	}
	w.t.Cleanup(leave)
	return &reader{t: w.t, status: answer.StatusCode, header: answer.Header, in: sse.NewReader(answer.Body, 1<<20), leave: leave}
}

// next returns the next event; more is false at the stream's end.
func (r *reader) next() (e sse.Event, more bool) {
	r.t.Helper()
	e, err := r.in.Next()
	if errors.Is(err, io.EOF) {
		return e, false
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return e, true
}

func textOf(t *testing.T, e sse.Event) string {
	t.Helper()
	var data struct{ Text string }
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		t.Fatalf("%v in %q", err, e.Data)
	}
	return data.Text
}

// shown is what a reader that follows the rules shows.
type shown struct {
	text     string
	last     string
	terminal []string
	types    []string
}

func (s *shown) take(t *testing.T, e sse.Event) {
	t.Helper()
	s.last = e.ID
	s.types = append(s.types, e.Type)
	switch e.Type {
	case "delta":
		s.text += textOf(t, e)
	case "reset":
		s.text = textOf(t, e)
	default:
		s.terminal = append(s.terminal, e.Type)
	}
}

// paced makes a model whose words a test lets go one by one.
func paced(words int) (func(*model), chan struct{}) {
	step := make(chan struct{})
	return func(m *model) {
		m.words = nil
		for i := range words {
			m.words = append(m.words, fmt.Sprintf("w%d ", i))
		}
		m.step = step
	}, step
}

func release(t *testing.T, step chan<- struct{}, n int) {
	t.Helper()
	for range n {
		select {
		case step <- struct{}{}:
		case <-time.After(30 * time.Second):
			t.Fatal("the model does not go on")
		}
	}
}

// readUntil reads until the text shown has n words.
func (s *shown) readUntil(r *reader, n int) {
	r.t.Helper()
	for strings.Count(s.text, " ") < n {
		e, more := r.next()
		if !more {
			r.t.Fatalf("the stream ended at %q", s.text)
		}
		s.take(r.t, e)
	}
}

// Case 33: a reader that is cut and comes back sees every word once, in order,
// whatever process and position it comes back to, and one terminal event.
func TestAReaderThatIsCutResumesWhereItWas(t *testing.T) {
	t.Parallel()
	edit, step := paced(100)
	w := newWorld(t, setup{workers: 1, model: edit})
	replica := newWorld(t, setup{path: w.path}) // another API process, without workers
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	task := w.send(request{do: path, key: key("K"), body: hello}).doc.Task.ID
	whole := ""
	for i := range 100 {
		whole += fmt.Sprintf("w%d ", i)
	}

	var page shown
	release(t, step, 40)
	r := w.follow(task, "")
	page.readUntil(r, 40)
	r.leave()
	w.follow(task, page.last).leave() // cut before any event
	release(t, step, 20)
	r = replica.follow(task, page.last) // after a restart of the API, or on another
	page.readUntil(r, 60)
	r.leave()
	if got := page.text; got != strings.Join(strings.SplitAfter(whole, " ")[:60], "") {
		t.Errorf("shown %q", got)
	}
	if slices.Contains(page.types, "reset") {
		t.Errorf("a served position got a reset: %v", page.types)
	}

	for _, strange := range []string{"1.999", "999", "7.1", "01890000-0000-7000-8000-000000000001", "x"} {
		e, more := w.follow(task, strange).next()
		if !more || e.Type != "reset" || textOf(t, e) != page.text || e.ID != page.last {
			t.Errorf("after id %q: %+v", strange, e)
		}
	}

	r = w.follow(task, page.last)
	release(t, step, 40)
	for e, more := r.next(); more; e, more = r.next() {
		page.take(t, e)
	}
	if !strings.HasPrefix(whole, page.text) || page.last != "end" || !slices.Equal(page.terminal, []string{"completed"}) {
		t.Errorf("in the end %q, last %q, terminal %v", page.text, page.last, page.terminal)
	}
	replica.checkLateReaders(task)
	if calls := w.model.calls.Load(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// checkLateReaders follows a task that has ended: the terminal event comes, and
// the stream's end.
func (w *world) checkLateReaders(task string) {
	t := w.t
	t.Helper()
	for _, last := range []string{"", "1.3", "999"} {
		var late shown
		r := w.follow(task, last)
		for e, more := r.next(); more; e, more = r.next() {
			late.take(t, e)
		}
		if late.last != "end" || !slices.Equal(late.terminal, []string{"completed"}) {
			t.Errorf("after the end, from %q: %v", last, late.types)
		}
	}
	if r := w.follow(task, "end"); r.status != http.StatusNoContent {
		t.Errorf("a reader that has the end: %d", r.status)
	}
}

func TestTheTerminalEventIsTheTask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		setup setup
		kind  string
	}{
		{"completed", works, "completed"},
		{"failed", failing, "failed"},
		{"cancelled", setup{}, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.setup)
			path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
			task := w.send(request{do: path, key: key("K"), body: hello}).doc.Task.ID
			r := w.follow(task, "")
			if c.kind == "cancelled" {
				w.send(request{do: "POST /v1/tasks/" + task + "/cancel"})
			}
			var page shown
			var last sse.Event
			for e, more := r.next(); more; e, more = r.next() {
				page.take(t, e)
				last = e
			}
			if !slices.Equal(page.terminal, []string{c.kind}) {
				t.Fatalf("terminal %v", page.terminal)
			}
			var body any
			if err := json.Unmarshal([]byte(last.Data), &body); err != nil {
				t.Fatal(err)
			}
			for _, fault := range mismatches("data", object{"$ref": "#/components/schemas/Task"}, body) {
				t.Error(fault)
			}
			if now := w.send(request{do: "GET /v1/tasks/" + task}); strings.TrimSpace(now.body) != last.Data {
				t.Errorf("the event has %s, the task is %s", last.Data, now.body)
			}
		})
	}
}

// Case 35, as far as one process can tell: Stop reaches a worker from any API
// process, whether it waits, works or was never claimed.
func TestStopBeforeAnyWorkerRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	task := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: hello}).doc.Task.ID
	if r := w.send(request{do: "POST /v1/tasks/" + task + "/cancel"}); r.doc.Status != "cancelled" {
		t.Errorf("%d %s", r.status, r.body)
	}
	works := newWorld(t, setup{path: w.path, workers: 2})
	other := works.send(request{do: "POST /v1/conversations/" + works.conversation("alice") + "/messages", key: key("L"), body: hello}).doc.Task.ID
	works.ended(other) // a worker was there and has looked
	if calls := works.model.calls.Load(); calls != 1 {
		t.Errorf("%d calls, want the other task's only", calls)
	}
}

func TestStopInTheStream(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"from the same process", "from another process"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			edit, step := paced(10)
			w := newWorld(t, setup{workers: 2, model: edit})
			from := w
			if strings.Contains(where, "another") {
				from = newWorld(t, setup{path: w.path})
			}
			task := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: hello}).doc.Task.ID
			r := w.follow(task, "")
			release(t, step, 3)
			var page shown
			page.readUntil(r, 3)
			if r := from.send(request{do: "POST /v1/tasks/" + task + "/cancel"}); r.doc.Status != "cancelled" {
				t.Fatalf("%d %s", r.status, r.body)
			}
			select {
			case <-w.model.stopped:
			case <-time.After(30 * time.Second):
				t.Fatal("the model's call goes on")
			}
			for e, more := r.next(); more; e, more = r.next() {
				page.take(t, e)
			}
			if !slices.Equal(page.terminal, []string{"cancelled"}) || page.text != "w0 w1 w2 " {
				t.Errorf("%v %q", page.terminal, page.text)
			}
			if left := w.counts(); left != (counts{1, 1, 1}) {
				t.Errorf("left %+v", left)
			}
		})
	}
}

func TestClosingTheTabDoesNotStop(t *testing.T) {
	t.Parallel()
	edit, step := paced(10)
	w := newWorld(t, setup{workers: 2, model: edit})
	task := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: hello}).doc.Task.ID
	r := w.follow(task, "")
	release(t, step, 3)
	r.leave()
	release(t, step, 7)
	if r := w.ended(task); r.doc.Status != "completed" {
		t.Errorf("%s", r.body)
	}
}

// The stream can be mounted in someone else's mux, with their own authority.
func TestEventsInAMuxOfOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works)
	task := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: hello}).doc.Task.ID
	w.ended(task)
	mux := http.NewServeMux()
	mux.Handle("GET /mine/{id}", httpapi.Events(w.engine, authorize))
	for _, c := range []struct {
		name, as, id, want string
		status             int
	}{
		{"the task", "alice", task, "event: completed\n", 200},
		{"nobody", "mallory", task, "/problems/unauthorized", 401},
		{"another workspace", "carol", task, "/problems/not_found", 404},
		{"nothing", "alice", "01890000-0000-7000-8000-00000000000a", "/problems/not_found", 404},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/mine/"+c.id, nil)
		r.Header.Set("Authorization", "Bearer "+c.as)
		got := httptest.NewRecorder()
		mux.ServeHTTP(got, r)
		if got.Code != c.status || !strings.Contains(got.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
	}
}

// A server that shuts down ends its streams and waits, so that it can.
func TestShutdownEndsStreamsAndWaits(t *testing.T) {
	t.Parallel()
	down, shutdown := context.WithCancel(t.Context())
	w := newWorld(t, setup{api: func(c *httpapi.Config) { c.Shutdown = down }})
	task := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: hello}).doc.Task.ID
	r := w.follow(task, "")
	waiting := make(chan response, 1)
	go func() {
		got, err := w.trySend(t.Context(), request{do: "GET /v1/tasks/" + task + "?wait=60s"})
		if err != nil {
			t.Error(err)
		}
		waiting <- got
	}()
	shutdown()
	if e, more := r.next(); more {
		t.Errorf("an event: %+v", e)
	}
	if got := <-waiting; got.status != 200 || got.doc.Status != "queued" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
