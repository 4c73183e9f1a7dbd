//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// api speaks to one address of the service: a process or a proxy before it. It
// has connections of its own and never repeats a request by itself.
type api struct {
	t    *testing.T
	url  string
	http *http.Client
}

func newAPI(t *testing.T, url string) *api {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &api{t: t, url: url, http: &http.Client{Transport: transport, Timeout: 40 * time.Second}}
}

// taskJSON is what the tests look at of a task on the wire.
type taskJSON struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Reason string `json:"reason"`
	Error  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Version    int64     `json:"assignment_version"`
	Worker     string    `json:"worker"`
	LeaseUntil time.Time `json:"lease_until"`
	RunAt      time.Time `json:"run_at"`
	CreatedAt  time.Time `json:"created_at"`
	EndedAt    time.Time `json:"ended_at"`
	Budget     struct {
		Attempts, Calls struct{ Used, Max int }
	} `json:"budget"`
	Response *struct {
		MessageID string `json:"message_id"`
		Text      string `json:"text"`
	} `json:"response"`
	Attempts []struct {
		Version   int64     `json:"version"`
		Worker    string    `json:"worker"`
		StartedAt time.Time `json:"started_at"`
		EndedAt   time.Time `json:"ended_at"`
		Outcome   string    `json:"outcome"`
		Calls     int       `json:"calls"`
	} `json:"attempts"`
}

func (t taskJSON) ended() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

func (t taskJSON) code() string {
	if t.Error == nil {
		return ""
	}
	return t.Error.Code
}

func (t taskJSON) text() string {
	if t.Response == nil {
		return ""
	}
	return t.Response.Text
}

// event is an entry of a timeline.
type event struct {
	Type    string    `json:"type"`
	At      time.Time `json:"at"`
	Count   int       `json:"count"`
	Version int64     `json:"version"`
	Worker  string    `json:"worker"`
	Why     string    `json:"why"`
	Code    string    `json:"code"`
}

type message struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Text    string `json:"text"`
	TaskID  string `json:"task_id"`
	ReplyTo string `json:"reply_to"`
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// sent is the body that answers a press of Send or Regenerate.
type sent struct {
	Message message  `json:"message"`
	Task    taskJSON `json:"task"`
}

func (a answer) sent(t *testing.T) sent {
	t.Helper()
	var s sent
	if err := json.Unmarshal(a.body, &s); err != nil || s.Task.ID == "" {
		t.Fatalf("answer %d %s: %v", a.status, a.body, err)
	}
	return s
}

// do makes one request. Its error is of the connection.
func (a *api) do(ctx context.Context, method, path, key string, body any) (answer, error) {
	var raw io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		raw = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, raw)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
		r.GetBody = nil // one request, not a second one behind our back
	}
	w, err := a.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	got, err := io.ReadAll(w.Body)
	return answer{status: w.StatusCode, header: w.Header, body: got}, errors.Join(err, w.Body.Close())
}

// must makes a request that has to be answered with the status.
func (a *api) must(status int, method, path, key string, body any) answer {
	a.t.Helper()
	got, err := a.do(a.t.Context(), method, path, key, body)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	if got.status != status {
		a.t.Fatalf("%s %s: %d, want %d: %s", method, path, got.status, status, got.body)
	}
	return got
}

func (a *api) get(path string, into any) {
	a.t.Helper()
	if err := json.Unmarshal(a.must(http.StatusOK, "GET", path, "", nil).body, into); err != nil {
		a.t.Fatalf("GET %s: %v", path, err)
	}
}

func (a *api) conversation() string {
	a.t.Helper()
	var c struct{ ID string }
	if err := json.Unmarshal(a.must(http.StatusCreated, "POST", "/v1/conversations", "", map[string]any{}).body, &c); err != nil {
		a.t.Fatal(err)
	}
	return c.ID
}

// policy is the optional part of a press of Send.
type policy map[string]any

func messageBody(text string, p policy) map[string]any {
	body := map[string]any{"text": text}
	if p != nil {
		body["policy"] = p
	}
	return body
}

// send presses Send once, whatever comes of it.
func (a *api) send(conversation, key, text string, p policy) (answer, error) {
	return a.do(a.t.Context(), "POST", "/v1/conversations/"+conversation+"/messages", key, messageBody(text, p))
}

func (a *api) task(id string) taskJSON {
	a.t.Helper()
	var t taskJSON
	a.get("/v1/tasks/"+id, &t)
	return t
}

func (a *api) timeline(id string) []event {
	a.t.Helper()
	var l struct{ Data []event }
	a.get("/v1/tasks/"+id+"/timeline", &l)
	return l.Data
}

func (a *api) messages(conversation string) []message {
	a.t.Helper()
	var c struct{ Messages []message }
	a.get("/v1/conversations/"+conversation, &c)
	return c.Messages
}

func (a *api) cancel(id string) (answer, error) {
	return a.do(a.t.Context(), "POST", "/v1/tasks/"+id+"/cancel", "", nil)
}

// awaitEnd waits until the task has ended.
func (a *api) awaitEnd(id string) taskJSON {
	a.t.Helper()
	return a.await(id, "it has ended", taskJSON.ended)
}

func (a *api) await(id, what string, holds func(taskJSON) bool) taskJSON {
	a.t.Helper()
	var last taskJSON
	if !soon(30*time.Second, func() bool { last = a.task(id); return holds(last) }) {
		a.t.Fatalf("task %s: not within 30s: %s; it stands at %+v", id, what, last)
	}
	return last
}

// awaitEvent waits for an event in the timeline.
func (a *api) awaitEvent(id string, what string, is func(event) bool) event {
	a.t.Helper()
	var found event
	var all []event
	if !soon(15*time.Second, func() bool {
		all = a.timeline(id)
		for _, e := range all {
			if is(e) {
				found = e
				return true
			}
		}
		return false
	}) {
		a.t.Fatalf("task %s: no %s in its timeline: %+v", id, what, all)
	}
	return found
}

func fencedOut(version int64) func(event) bool {
	return func(e event) bool { return e.Type == "fenced_out" && e.Version == version }
}

func (t taskJSON) String() string {
	return fmt.Sprintf("%s %s %s version %d attempts %d calls %d code %q", t.ID, t.Status, t.Reason, t.Version, t.Budget.Attempts.Used, t.Budget.Calls.Used, t.code())
}
