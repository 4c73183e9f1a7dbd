package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply/httpapi"
)

func TestAConversationShowsItsMessagesAndSiblings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works)
	c := w.conversation("alice")
	sent := w.send(request{do: "POST /v1/conversations/" + c + "/messages", key: key("K"), body: hello})
	w.ended(sent.doc.Task.ID)
	again := w.send(request{do: "POST /v1/messages/" + sent.doc.Message.ID + "/regenerate", key: key("R"), body: `{}`})
	w.ended(again.doc.Task.ID)

	var thread struct {
		Title    string
		Messages []struct {
			Role, Text, HTML, ID string
			TaskID               string `json:"task_id"`
			ReplyTo              string `json:"reply_to"`
			Shown                *bool
		}
	}
	r := w.send(request{do: "GET /v1/conversations/" + c + "?render=html"})
	if err := json.Unmarshal([]byte(r.body), &thread); err != nil {
		t.Fatal(err)
	}
	if thread.Title != "hello" || len(thread.Messages) != 3 {
		t.Fatalf("%s", r.body)
	}
	question, older, newer := thread.Messages[0], thread.Messages[1], thread.Messages[2]
	if question.Role != "user" || question.HTML != "" || question.Shown != nil || question.TaskID != again.doc.Task.ID {
		t.Errorf("the question: %+v", question)
	}
	for _, answer := range thread.Messages[1:] {
		if answer.Role != "assistant" || answer.ReplyTo != question.ID || answer.HTML != "<p>one good answer</p>" {
			t.Errorf("an answer: %+v", answer)
		}
	}
	if *older.Shown || !*newer.Shown || older.TaskID != sent.doc.Task.ID || newer.TaskID != again.doc.Task.ID {
		t.Errorf("siblings: %s", r.body)
	}
	if plain := w.send(request{do: "GET /v1/conversations/" + c}); strings.Contains(plain.body, "html") {
		t.Errorf("nobody asked for HTML: %s", plain.body)
	}
	task := w.send(request{do: "GET /v1/tasks/" + again.doc.Task.ID + "?render=html"})
	if !strings.Contains(task.body, `"html":"<p>one good answer</p>"`) && !strings.Contains(task.body, `"html":"\u003cp\u003eone`) {
		t.Errorf("the task: %s", task.body)
	}
	bare := newWorld(t, setup{path: w.path, api: func(c *httpapi.Config) { c.Render = nil }})
	if r := bare.send(request{do: "GET /v1/conversations/" + c + "?render=html"}); r.code != "invalid_request" {
		t.Errorf("without a renderer: %d %s", r.status, r.body)
	}
}

type pageDoc struct {
	Data []struct{ ID, Status, Kind string }
	Next string
}

func TestListsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	c := w.conversation("alice")
	tasks, conversations := []string{}, []string{c}
	for i := range 5 {
		tasks = append(tasks, w.send(request{do: "POST /v1/conversations/" + c + "/messages", key: key(fmt.Sprint(i)), body: hello}).doc.Task.ID)
		conversations = append(conversations, w.conversation("alice"))
	}
	w.send(request{do: "POST /v1/tasks/" + tasks[2] + "/cancel"})
	slices.Reverse(tasks) // newest first
	slices.Reverse(conversations)
	for _, c := range []struct {
		name, path string
		want       []string
		pages      int
	}{
		{"tasks in one page", "/v1/tasks?", tasks, 1},
		{"tasks, a page that is just full", "/v1/tasks?limit=5", tasks, 1},
		{"tasks two by two", "/v1/tasks?limit=2", tasks, 3},
		{"tasks of a status", "/v1/tasks?status=cancelled", tasks[2:3], 1},
		{"tasks of another status", "/v1/tasks?limit=3&status=queued", slices.Concat(tasks[:2], tasks[3:]), 2},
		{"tasks of a kind", "/v1/tasks?kind=reply&limit=4", tasks, 2},
		{"tasks of a kind that is none", "/v1/tasks?kind=index", nil, 1},
		{"conversations in one page", "/v1/conversations?", conversations, 1},
		{"conversations three by three", "/v1/conversations?limit=3", conversations, 2},
		{"conversations four by four", "/v1/conversations?limit=4", conversations, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			pages, after := 0, ""
			for pages == 0 || after != "" {
				var page pageDoc
				path := c.path
				if after != "" {
					path += "&after=" + after
				}
				r := w.send(request{do: "GET " + path})
				if err := json.Unmarshal([]byte(r.body), &page); err != nil || page.Data == nil {
					t.Fatalf("%v in %s", err, r.body)
				}
				for _, one := range page.Data {
					got = append(got, one.ID)
				}
				after = page.Next
				if pages++; pages > 10 {
					t.Fatal("the list has no end")
				}
			}
			if !slices.Equal(got, c.want) || pages != c.pages {
				t.Errorf("%d pages of %v, want %d of %v", pages, got, c.pages, c.want)
			}
		})
	}
}

func TestWaitHoldsUntilTheEndOrItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	task := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: hello}).doc.Task.ID
	<-w.model.started
	for _, wait := range []string{"1ns", "1ms", "0s"} {
		if r := w.send(request{do: "GET /v1/tasks/" + task + "?wait=" + wait}); r.status != 200 || r.doc.Status != "running" {
			t.Errorf("wait=%s: %d %s", wait, r.status, r.body)
		}
	}
	asked := make(chan response, 1)
	go func() {
		r, err := w.trySend(t.Context(), request{do: "GET /v1/tasks/" + task + "?wait=60s"})
		if err != nil {
			t.Error(err)
		}
		asked <- r
	}()
	close(w.model.hold)
	if r := <-asked; r.doc.Status != "completed" || len(r.doc.Response) == 0 {
		t.Errorf("%s", r.body)
	}
}

func TestATaskTellsWhatItUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works)
	deadline := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	body := fmt.Sprintf(`{"text":"hello","policy":{"on_unknown_outcome":"stop","deadline":%q}}`, deadline.Format(time.RFC3339Nano))
	task := w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: body}).doc.Task.ID
	r := w.ended(task)
	for _, has := range []string{
		`"budget":{"attempts":{"used":1,"max":2},"calls":{"used":1,"max":2},"elapsed_max":"15m0s"}`,
		`"deadline":"` + deadline.Format(time.RFC3339Nano) + `"`, `"outcome":"accepted"`, `"usage":{"input_tokens":3,"output_tokens":2}`,
		`"model":"scripted-1"`, `"citations":[]`,
	} {
		if !strings.Contains(r.body, has) {
			t.Errorf("the task lacks %s: %s", has, r.body)
		}
	}
	w.send(request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: body}) // 422: not in the timeline
	timeline := w.send(request{do: "GET /v1/tasks/" + task + "/timeline"})
	for _, has := range []string{"submitted", "claimed", "called", "accepted"} {
		if !strings.Contains(timeline.body, `"type":"`+has+`"`) {
			t.Errorf("the timeline lacks %s: %s", has, timeline.body)
		}
	}
	if r := w.send(request{do: "GET /v1/tasks/01890000-0000-7000-8000-00000000000a/timeline"}); r.status != 404 {
		t.Errorf("the timeline of nothing: %d", r.status)
	}
}

func TestADeadlineThatHasPassedMustBeGivenAnewToResume(t *testing.T) {
	t.Parallel()
	clock := newClock()
	w := newWorld(t, setup{clock: clock})
	body := fmt.Sprintf(`{"text":"hello","policy":{"deadline":%q}}`, clock.Now().Add(time.Minute).Format(time.RFC3339Nano))
	press := request{do: "POST /v1/conversations/" + w.conversation("alice") + "/messages", key: key("K"), body: body}
	sent := w.send(press)
	clock.move(2 * time.Minute)
	// The key finds its task, whatever became of the deadline since.
	if r := w.send(press); r.status != 200 || r.doc.Task.ID != sent.doc.Task.ID {
		t.Errorf("a replay after the deadline: %d %s", r.status, r.body)
	}
	w.stop()
	w = newWorld(t, setup{workers: 2, path: w.path, clock: clock})
	if r := w.ended(sent.doc.Task.ID); r.doc.Status != "failed" || r.doc.Reason != "deadline_exceeded" {
		t.Fatalf("%s", r.body)
	}
	resume := "POST /v1/tasks/" + sent.doc.Task.ID + "/resume"
	if r := w.send(request{do: resume, key: key("R"), body: `{}`}); r.status != 409 || r.code != "deadline_exceeded" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := w.send(request{do: resume, key: key("R"), body: `{"deadline":"2021-01-01T00:00:00Z"}`}); r.status != 409 || r.code != "deadline_exceeded" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := w.send(request{do: resume, key: key("R"), body: `{"deadline":"2999-01-01T00:00:00Z"}`}); r.status != 202 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := w.ended(sent.doc.Task.ID); r.doc.Status != "completed" {
		t.Errorf("%s", r.body)
	}
	if calls := w.model.calls.Load(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestARefusalPointsToTheMember(t *testing.T) {
	t.Parallel()
	clock := newClock()
	w := newWorld(t, setup{clock: clock})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	at := func(d time.Duration) string {
		return fmt.Sprintf(`{"text":"hello","policy":{"deadline":%q}}`, clock.Now().Add(d).Format(time.RFC3339Nano))
	}
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"no text", `{}`, 400, `"pointer":"/text"`},
		{"an empty text", `{"text":""}`, 400, `"pointer":"/text"`},
		{"a NUL", `{"text":"a\u0000"}`, 400, `"pointer":"/text"`},
		{"a deadline that has passed", at(-time.Millisecond), 400, `"pointer":"/policy/deadline"`},
		{"a deadline before there were clocks", `{"text":"hello","policy":{"deadline":"1950-01-01T00:00:00Z"}}`, 400, `"pointer":"/policy/deadline"`},
		{"a deadline of now", at(0), 400, `"pointer":"/policy/deadline"`},
		{"a policy nobody knows", `{"text":"hello","policy":{"on_unknown_outcome":"hope"}}`, 400, `"pointer":"/policy/on_unknown_outcome"`},
		{"a document without a version", `{"text":"hello","documents":[{"id":"a","version":1},{"id":"b"}]}`, 400, `"pointer":"/documents/1"`},
		{"a text above the limit", `{"text":"` + strings.Repeat("x", 4097) + `"}`, 413, "may have 4096 bytes"},
		{"a body that no text within the limit needs", `{"text":"` + strings.Repeat("x", 7*4096+16<<10) + `"}`, 413, "may have 4096 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := w.send(request{do: path, key: key("K"), body: c.body})
			if r.status != c.status || !strings.Contains(r.body, c.want) {
				t.Errorf("%d %s, want %d with %s", r.status, r.body, c.status, c.want)
			}
			if c.status == 413 && (!strings.Contains(r.body, `"max_bytes":4096`) || !strings.Contains(r.body, `"pointer":"/text"`)) {
				t.Errorf("%s", r.body)
			}
		})
	}
	if left := w.counts(); left != (counts{}) {
		t.Errorf("left %+v", left)
	}
}
