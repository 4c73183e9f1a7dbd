package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/store/sqlite"
)

// Case 1: the key is enforced at the write. The answer to the first request
// is lost, and the same request comes again and again, also after completion
// and after a restart.
func TestALostAnswerIsOneMessageOneTaskOneReplyOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	c := w.conversation("alice")
	path := "POST /v1/conversations/" + c + "/messages"
	hangUp, cancel := context.WithCancel(t.Context())
	go func() {
		<-w.model.started // it is at work, so it was accepted
		cancel()
	}()
	if _, err := w.trySend(hangUp, request{do: path, key: key("K"), body: hello}); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-hangUp.Done()
	again := w.send(request{do: path, key: key("K"), body: hello})
	if again.status != 200 || again.doc.Task.Status != "running" {
		t.Fatalf("at once: %d %s", again.status, again.body)
	}
	close(w.model.hold)
	w.ended(again.doc.Task.ID)
	calls := w.model.calls.Load()
	for _, when := range []string{"after completion", "after a restart"} {
		if when == "after a restart" {
			w.stop()
			w = newWorld(t, setup{workers: 2, path: w.path})
			calls += w.model.calls.Load()
		}
		r := w.send(request{do: path, key: key("K"), body: hello})
		if r.status != 200 || r.doc.Task.ID != again.doc.Task.ID || r.doc.Message.ID != again.doc.Message.ID || r.doc.Task.Status != "completed" {
			t.Errorf("%s: %d %s", when, r.status, r.body)
		}
		thread := w.send(request{do: "GET /v1/conversations/" + c})
		if len(thread.doc.Messages) != 2 || thread.doc.Messages[0].Role != "user" || thread.doc.Messages[1].Text != "one good answer" {
			t.Errorf("%s the conversation is %s", when, thread.body)
		}
	}
	if left := w.counts(); left != (counts{1, 2, 1}) || calls != 1 {
		t.Errorf("left %+v after %d calls", left, calls)
	}
}

// Case 3: another workspace's key, task, stream and conversation are not there.
func TestAnotherWorkspaceSeesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works)
	ours, theirs := w.conversation("alice"), w.conversation("carol")
	one := w.send(request{do: "POST /v1/conversations/" + ours + "/messages", key: key("K1"), body: hello})
	two := w.send(request{do: "POST /v1/conversations/" + theirs + "/messages", as: "carol", key: key("K1"), body: hello})
	if two.status != 202 || two.doc.Task.ID == one.doc.Task.ID {
		t.Fatalf("%d %s", two.status, two.body)
	}
	task, message := one.doc.Task.ID, one.doc.Message.ID
	w.ended(task)
	for _, q := range []request{
		{do: "GET /v1/tasks/" + task}, {do: "GET /v1/tasks/" + task + "?wait=1s"}, {do: "GET /v1/tasks/" + task + "/events"},
		{do: "GET /v1/tasks/" + task + "/events", header: plain("Last-Event-ID", "end")},
		{do: "GET /v1/tasks/" + task + "/timeline"}, {do: "POST /v1/tasks/" + task + "/cancel"},
		{do: "POST /v1/tasks/" + task + "/resume", key: key("R"), body: `{}`},
		{do: "GET /v1/conversations/" + ours}, {do: "DELETE /v1/conversations/" + ours},
		{do: "POST /v1/conversations/" + ours + "/messages", key: key("K1"), body: hello},
		{do: "POST /v1/messages/" + message + "/regenerate", key: key("K1"), body: `{}`},
	} {
		for as, want := range map[string]int{"carol": http.StatusNotFound, "mallory": http.StatusUnauthorized} {
			q.as = as
			if r := w.send(q); r.status != want || strings.Contains(r.body, "answer") {
				t.Errorf("%s as %s: %d %s", q.do, as, r.status, r.body)
			}
		}
	}
	for _, list := range []string{"/v1/tasks", "/v1/conversations"} {
		r := w.send(request{do: "GET " + list, as: "carol"})
		if strings.Contains(r.body, task) || strings.Contains(r.body, ours) || !strings.Contains(r.body, two.doc.Task.ID) && list == "/v1/tasks" {
			t.Errorf("%s as carol: %s", list, r.body)
		}
	}
	w.send(request{do: "GET /v1/tasks/" + two.doc.Task.ID + "?wait=30s", as: "carol"})
	if left := w.counts(); left != (counts{2, 4, 2}) {
		t.Errorf("left %+v", left)
	}
}

// Case 5: a worker never sees a task before its rows: neither while the commit
// is delayed, nor after one that was rolled back, nor under load.
func TestAWorkerNeverSeesATaskWhileItsCommitIsDelayed(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}, 1000), make(chan struct{})
	w := newWorld(t, setup{workers: 2, sqlite: stallCommits(began, goOn)})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	<-began
	answered := make(chan response, 1)
	go func() {
		r, err := w.trySend(t.Context(), request{do: path, key: key("K"), body: hello})
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	<-began
	if left := w.counts(); left != (counts{}) || w.model.calls.Load() != 0 {
		t.Errorf("before the commit: %+v and %d calls", left, w.model.calls.Load())
	}
	close(goOn)
	r := <-answered
	if got := w.ended(r.doc.Task.ID); r.status != 202 || got.doc.Status != "completed" {
		t.Errorf("%d, then %s", r.status, got.body)
	}
}

func TestAWorkerNeverSeesATaskThatWasRolledBack(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	w := newWorld(t, setup{workers: 2, sqlite: func(o *sqlite.Options) {
		o.Faults = &sqlite.Faults{BeforeCommit: func() error {
			if refuse.Load() {
				return fmt.Errorf("%w: rolled back", onereply.ErrUnavailable)
			}
			return nil
		}}
	}})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	refuse.Store(true)
	if r := w.send(request{do: path, key: key("K"), body: hello}); r.status < 500 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if left := w.counts(); left != (counts{}) || w.model.calls.Load() != 0 {
		t.Errorf("after the rollback: %+v and %d calls", left, w.model.calls.Load())
	}
	refuse.Store(false)
	r := w.send(request{do: path, key: key("K"), body: hello})
	if got := w.ended(r.doc.Task.ID); r.status != 202 || got.doc.Status != "completed" || w.counts() != (counts{1, 2, 1}) {
		t.Errorf("%d, then %s; left %+v", r.status, got.body, w.counts())
	}
}

func TestAWorkerNeverSeesATaskBeforeItsRowsUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{workers: 16})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	got := newTally()
	together(20, func(i int) {
		for n := range 10 {
			got.add(w.trySend(t.Context(), request{do: path, key: key(fmt.Sprintf("K%d-%d", i, n)), body: hello}))
		}
	})
	got.check(t, map[int]int{202: 200}, 200)
	for task := range got.tasks {
		if r := w.ended(task); r.doc.Status != "completed" {
			t.Fatalf("%s", r.body)
		}
	}
	if left := w.counts(); left != (counts{200, 400, 200}) || w.model.calls.Load() != 200 {
		t.Errorf("left %+v after %d calls", left, w.model.calls.Load())
	}
}

// Case 39, as far as one process can tell: what was deleted in the middle of an
// answer stays deleted, and its neighbour goes on.
func TestDeletingAConversationInMidAnswer(t *testing.T) {
	t.Parallel()
	edit, step := paced(4)
	w := newWorld(t, setup{workers: 2, model: edit})
	gone, stays := w.conversation("alice"), w.conversation("alice")
	one := w.send(request{do: "POST /v1/conversations/" + gone + "/messages", key: key("K1"), body: hello}).doc.Task.ID
	<-w.model.started
	two := w.send(request{do: "POST /v1/conversations/" + stays + "/messages", key: key("K2"), body: hello}).doc.Task.ID
	<-w.model.started
	if r := w.send(request{do: "DELETE /v1/conversations/" + gone}); r.status != http.StatusNoContent {
		t.Fatalf("%d %s", r.status, r.body)
	}
	<-w.model.stopped
	release(t, step, 4)
	if r := w.ended(two); r.doc.Status != "completed" {
		t.Errorf("the neighbour: %s", r.body)
	}
	if r := w.ended(one); r.doc.Status != "cancelled" {
		t.Errorf("the task: %s", r.body)
	}
	for _, do := range []string{"GET", "DELETE"} {
		if r := w.send(request{do: do + " /v1/conversations/" + gone}); r.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", do, r.status, r.body)
		}
	}
	if left := w.counts(); left != (counts{2, 2, 2}) {
		t.Errorf("left %+v", left)
	}
}

// Another MaxMessage than the API's is the chat's own refusal, with the same
// code.
func TestTheChatsOwnLimitIsTooLargeToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{path: filepath.Join(t.TempDir(), "small.db"), chat: func(c *chat.Config) { c.MaxMessage = 4 }})
	r := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: hello})
	if r.status != http.StatusRequestEntityTooLarge || r.code != "too_large" {
		t.Errorf("%d %s", r.status, r.body)
	}
}
