package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/client"
)

// script answers the n-th request with the n-th step and records what came.
type script struct {
	mu    sync.Mutex
	steps []func(http.ResponseWriter, *http.Request)
	seen  []seen
}

type seen struct{ Line, Key, Body string }

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte(err.Error())
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen{r.Method + " " + r.URL.RequestURI(), r.Header.Get("Idempotency-Key"), string(body)})
	step := s.steps[min(len(s.seen), len(s.steps))-1]
	s.mu.Unlock()
	step(w, r)
}

func (s *script) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func answer(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// cut writes a part of an answer and breaks the connection.
func cut(part string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		fmt.Fprint(w, part)
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
		panic(http.ErrAbortHandler)
	}
}

func setup(t *testing.T, steps ...func(http.ResponseWriter, *http.Request)) (*client.Client, *script) {
	t.Helper()
	s := &script{steps: steps}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL+"/", client.Options{
		HTTP: server.Client(), Backoff: onereply.Backoff{Base: time.Millisecond, Max: time.Millisecond}, Patience: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

const sentBody = `{"message":{"id":"m1","role":"user","text":"hi"},"task":{"id":"t1","status":"queued"}}`

func TestARetriedSendKeepsItsKeyAndItsBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		step func(http.ResponseWriter, *http.Request)
	}{
		{"after the connection broke before the answer", cut("")},
		{"after the answer was cut", cut(sentBody[:20])},
		{"after 503", answer(503, `{"type":"/problems/unavailable"}`)},
		{"after 500 from a proxy", answer(500, "<html>")},
		{"after 429", answer(429, `{"type":"/problems/rate_limited"}`, "Retry-After", "0")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cl, s := setup(t, c.step, answer(200, sentBody, "Idempotent-Replayed", "true"))
			sent, err := cl.Send(t.Context(), "c/1", "k1", "hi", nil)
			if err != nil {
				t.Fatal(err)
			}
			if sent.Task.ID != "t1" || sent.Message.ID != "m1" || !sent.Replayed {
				t.Errorf("sent is %+v", sent)
			}
			got := s.requests()
			want := seen{"POST /v1/conversations/c%2F1/messages", "k1", `{"text":"hi"}`}
			if len(got) < 2 {
				t.Fatalf("%d requests, want at least 2", len(got))
			}
			for _, r := range got {
				if diff := cmp.Diff(want, r); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestARefusalIsNotRetried(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 409, 413, 415, 422} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			cl, s := setup(t, answer(status, `{"type":"/problems/some_code","title":"T","detail":"D"}`))
			_, err := cl.Send(t.Context(), "c", "k", "hi", nil)
			var p *client.Problem
			if !errors.As(err, &p) || p.Status != status || p.Code != "some_code" || p.Detail != "D" {
				t.Fatalf("error is %v", err)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answerHandler(503))
	t.Cleanup(server.Close)
	cl, err := client.New(server.URL, client.Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cl.Task(t.Context(), "t")
	var p *client.Problem
	if !errors.Is(err, client.ErrGaveUp) || !errors.As(err, &p) || p.Status != 503 {
		t.Errorf("error is %v, want ErrGaveUp and the last refusal", err)
	}
}

func answerHandler(status int) http.Handler { return http.HandlerFunc(answer(status, "")) }

func TestACancelledContextEndsTheTries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cl, _ := setup(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		answer(503, "")(w, r)
	})
	if _, err := cl.Task(ctx, "t"); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestAnotherServiceIsNotMistaken(t *testing.T) {
	t.Parallel()
	cl, _ := setup(t, answer(200, "<html>hello</html>"))
	if _, err := cl.Task(t.Context(), "t"); err == nil || !strings.Contains(err.Error(), "is not the JSON expected") {
		t.Errorf("error is %v", err)
	}
	for _, base := range []string{"", "localhost:8080", "ftp://x", "http://"} {
		if _, err := client.New(base, client.Options{}); err == nil {
			t.Errorf("New(%q) found nothing wrong", base)
		}
	}
}

func TestFollowTakesUpABrokenStreamWhereItBroke(t *testing.T) {
	t.Parallel()
	cl, s := setup(t,
		cut("id: 1.1\nevent: delta\ndata: {\"text\":\"one \"}\n\nid: 1.2\nevent: delta\ndata: {\"text\":\"tw"),
		answer(503, ""),
		cut("id: 1.2\nevent: delta\ndata: {\"text\":\"two\"}\n\n: beat\n\nid: 2.0\nevent: reset\ndata: {\"assignment_version\":2,\"text\":\"\"}\n\n"),
		answer(200, "id: 2.1\nevent: delta\ndata: {\"text\":\"uno\"}\n\nevent: novelty\ndata: {}\n\nid: end\nevent: completed\ndata: {\"id\":\"t1\",\"status\":\"completed\",\"response\":{\"text\":\"uno\"}}\n\n"),
	)
	var got []client.Delta
	task, err := cl.Follow(t.Context(), "t1", "", func(d client.Delta) error {
		got = append(got, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []client.Delta{{ID: "1.1", Text: "one "}, {ID: "1.2", Text: "two"}, {ID: "2.0", Reset: true}, {ID: "2.1", Text: "uno"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	if r, err := task.Reply(); err != nil || r.Text != "uno" {
		t.Errorf("reply is %+v, %v", r, err)
	}
	var lines []string
	for _, r := range s.requests() {
		lines = append(lines, r.Line)
	}
	path := "GET /v1/tasks/t1/events"
	if diff := cmp.Diff([]string{path, path + "?last_event_id=1.1", path + "?last_event_id=1.1", path + "?last_event_id=2.0"}, lines); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestFollowOfWhatWasReadToTheEndReadsTheTask(t *testing.T) {
	t.Parallel()
	cl, _ := setup(t, answer(204, ""), answer(200, `{"id":"t1","status":"cancelled"}`))
	task, err := cl.Follow(t.Context(), "t1", "end", func(client.Delta) error { return nil })
	if err != nil || task.Status != onereply.StatusCancelled {
		t.Errorf("got %+v, %v", task, err)
	}
}

func TestFollowEndsWithTheErrorOfShow(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	cl, s := setup(t, answer(200, "id: 1.1\nevent: delta\ndata: {\"text\":\"one\"}\n\n"))
	if _, err := cl.Follow(t.Context(), "t1", "", func(client.Delta) error { return full }); !errors.Is(err, full) {
		t.Errorf("error is %v", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestWaitAsksUntilTheTaskHasEnded(t *testing.T) {
	t.Parallel()
	cl, s := setup(t, answer(200, `{"id":"t1","status":"running"}`), answer(200, `{"id":"t1","status":"failed","reason":"permanent"}`))
	task, err := cl.Wait(t.Context(), "t1")
	if err != nil || task.Reason != onereply.ReasonPermanent {
		t.Errorf("got %+v, %v", task, err)
	}
	if got := s.requests(); len(got) != 2 || got[0].Line != "GET /v1/tasks/t1?wait=20s" {
		t.Errorf("requests: %+v", got)
	}
}

func TestRequestsAreSpelledAsTheContractSpellsThem(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name string
		call func(context.Context, *client.Client) error
		want seen
	}{
		{"list conversations", func(ctx context.Context, c *client.Client) error {
			_, err := c.Conversations(ctx, client.Page{Limit: 3, After: "x"})
			return err
		}, seen{Line: "GET /v1/conversations?after=x&limit=3"}},
		{"read a conversation", func(ctx context.Context, c *client.Client) error {
			_, err := c.Conversation(ctx, "a")
			return err
		}, seen{Line: "GET /v1/conversations/a"}},
		{"delete a conversation", func(ctx context.Context, c *client.Client) error {
			return c.DeleteConversation(ctx, "a")
		}, seen{Line: "DELETE /v1/conversations/a"}},
		{"regenerate", func(ctx context.Context, c *client.Client) error {
			_, err := c.Regenerate(ctx, "m", "k")
			return err
		}, seen{"POST /v1/messages/m/regenerate", "k", "{}"}},
		{"send with a policy", func(ctx context.Context, c *client.Client) error {
			_, err := c.Send(ctx, "a", "k", "hi", &client.Policy{OnUnknownOutcome: onereply.UnknownStop, Deadline: &deadline})
			return err
		}, seen{"POST /v1/conversations/a/messages", "k", `{"text":"hi","policy":{"on_unknown_outcome":"stop","deadline":"2030-01-02T03:04:05Z"}}`}},
		{"list tasks", func(ctx context.Context, c *client.Client) error {
			_, err := c.Tasks(ctx, client.Filter{Status: onereply.StatusFailed, Kind: "reply", Page: client.Page{Limit: 2}})
			return err
		}, seen{Line: "GET /v1/tasks?kind=reply&limit=2&status=failed"}},
		{"timeline", func(ctx context.Context, c *client.Client) error {
			_, err := c.Timeline(ctx, "t")
			return err
		}, seen{Line: "GET /v1/tasks/t/timeline"}},
		{"cancel", func(ctx context.Context, c *client.Client) error {
			_, err := c.Cancel(ctx, "t")
			return err
		}, seen{Line: "POST /v1/tasks/t/cancel"}},
		{"resume", func(ctx context.Context, c *client.Client) error {
			_, err := c.Resume(ctx, "t", "k", time.Time{})
			return err
		}, seen{"POST /v1/tasks/t/resume", "k", "{}"}},
		{"resume with a deadline", func(ctx context.Context, c *client.Client) error {
			_, err := c.Resume(ctx, "t", "k", deadline)
			return err
		}, seen{"POST /v1/tasks/t/resume", "k", `{"deadline":"2030-01-02T03:04:05Z"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cl, s := setup(t, answer(200, `{}`))
			if err := c.call(t.Context(), cl); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]seen{c.want}, s.requests()); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}
