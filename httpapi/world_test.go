package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/httpapi"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/tables"
)

// world is the real API on the real engine, chat and SQLite store; only the
// model is scripted.
type world struct {
	t      *testing.T
	server *httptest.Server
	api    http.Handler
	store  *sqlite.Store
	engine *engine.Engine
	model  *model
	path   string
	stop   func() // ends the server, the engine and the store; may be called twice

	mu   sync.Mutex
	seen map[string]bool // request ids
}

// setup are a world's choices; zero members take the defaults named.
type setup struct {
	path    string       // of the database; default a new file
	workers int          // default -1: tasks stay queued
	model   func(*model) // edits the script; default: answers at once
	clock   *clock       // default the host's
	sqlite  func(*sqlite.Options)
	engine  func(*engine.Options)
	chat    func(*chat.Config)
	api     func(*httpapi.Config)
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, model: newModel(), path: s.path, seen: make(map[string]bool)}
	if s.model != nil {
		s.model(w.model)
	}
	if w.path == "" {
		w.path = filepath.Join(t.TempDir(), "onereply.db")
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	options := sqlite.Options{Migrate: true, Logger: log}
	if s.clock != nil {
		options.Now, options.Elapsed = s.clock.Now, s.clock.Elapsed
	}
	if s.sqlite != nil {
		s.sqlite(&options)
	}
	var err error
	if w.store, err = sqlite.Open(t.Context(), w.path, options); err != nil {
		t.Fatal(err)
	}
	service := w.newChat(s.chat)
	stopEngine := w.startEngine(s, service, log)
	stopServer := w.startServer(s, service, log)
	w.stop = sync.OnceFunc(func() {
		stopServer()
		stopEngine()
		if err := w.store.Close(); err != nil {
			t.Errorf("store: %v", err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// startEngine makes the engine run, and returns what ends it.
func (w *world) startEngine(s setup, service *chat.Service, log *slog.Logger) (stop func()) {
	w.t.Helper()
	o := engine.Options{Store: w.store, Kinds: []onereply.Kind{service.Kind()}, Workers: s.workers, Logger: log, Drain: -1}
	if o.Workers == 0 {
		o.Workers = -1
	}
	if s.engine != nil {
		s.engine(&o)
	}
	var err error
	if w.engine, err = engine.New(o); err != nil {
		w.t.Fatal(err)
	}
	service.Bind(w.engine)
	running, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.engine.Run(running) }()
	return func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("engine: %v", err)
		}
	}
}

// startServer makes the API served, and returns what ends it.
func (w *world) startServer(s setup, service *chat.Service, log *slog.Logger) (stop func()) {
	streams, stopStreams := context.WithCancel(w.t.Context())
	config := httpapi.Config{
		Engine: w.engine, Chat: service, Authorize: authorize, MaxMessage: 4096, Logger: log, Shutdown: streams,
		Render: func(markdown string) string { return "<p>" + markdown + "</p>" },
	}
	if s.api != nil {
		s.api(&config)
	}
	w.api = httpapi.New(config)
	w.server = httptest.NewUnstartedServer(w.api)
	w.server.Config = httpapi.Server(w.api, log)
	w.server.Start()
	return func() {
		stopStreams()
		w.server.Close()
	}
}

func (w *world) newChat(edit func(*chat.Config)) *chat.Service {
	w.t.Helper()
	rows, err := tables.NewChat(tables.Database{
		Read:   tables.SQL(w.store.Reader()),
		Unwrap: func(tx onereply.Tx) tables.Querier { return tables.SQL(sqlite.Unwrap(tx)) },
		Now:    w.store.Now,
		Fault:  sqlite.Fault,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	config := chat.Config{Store: rows, Model: w.model, Policy: onereply.Policy{
		MaxAttempts: 2, MaxCalls: 2, Backoff: onereply.Backoff{Base: time.Millisecond, Max: time.Millisecond},
	}}
	if edit != nil {
		edit(&config)
	}
	service, err := chat.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return service
}

// authorize knows two people of one workspace and one of another.
func authorize(r *http.Request) (string, error) {
	switch r.Header.Get("Authorization") {
	case "Bearer alice", "Bearer bob":
		return "w1", nil
	case "Bearer carol":
		return "w2", nil
	}
	return "", httpapi.ErrUnauthorized
}

// clock is the host's clock as a test moves it.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) Now() time.Time         { return time.UnixMilli(c.ms.Load()) }
func (c *clock) Elapsed() time.Duration { return 0 }
func (c *clock) move(d time.Duration)   { c.ms.Add(d.Milliseconds()) }

// response is an answer with what a test looks at taken out of it.
type response struct {
	status int
	header http.Header
	body   string
	doc    struct {
		ID       string                                  `json:"id"`
		Status   string                                  `json:"status"`
		Reason   string                                  `json:"reason"`
		Response json.RawMessage                         `json:"response"`
		Task     *taskDoc                                `json:"task"`
		Message  *chat.Message                           `json:"message"`
		Messages []struct{ Role, Text, HTML, ID string } `json:"messages"`
	}
	code string // of a problem
}

type taskDoc struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Response json.RawMessage
	Attempts []json.RawMessage
}

// request is what to send. Zero members: alice, JSON, no key.
type request struct {
	do     string // "METHOD /path"
	as     string
	key    []string // lines of the header
	header map[string]string
	body   string
}

// send sends a request and checks what holds for every answer: the contract
// of openapi.json, and the rules in checkAnswer.
func (w *world) send(q request) response {
	w.t.Helper()
	r, err := w.trySend(w.t.Context(), q)
	if err != nil {
		w.t.Fatalf("%s: %v", q.do, err)
	}
	return r
}

func (w *world) trySend(ctx context.Context, q request) (response, error) {
	method, path, _ := strings.Cut(q.do, " ")
	r, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, strings.NewReader(q.body))
	if err != nil {
		return response{}, err
	}
	if q.as == "" {
		q.as = "alice"
	}
	r.Header.Set("Authorization", "Bearer "+q.as)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.key != nil {
		r.Header[httpapi.KeyHeader] = q.key
	}
	for name, value := range q.header {
		if value == "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, value)
	}
	answer, err := w.server.Client().Do(r)
	if err != nil {
		return response{}, err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return response{}, fmt.Errorf("reading the answer: %w", err)
	}
	got := response{status: answer.StatusCode, header: answer.Header, body: string(body)}
	w.checkAnswer(q, &got)
	checkContract(w.t, method, path, got)
	return got, nil
}

// checkAnswer holds for every answer of the API.
func (w *world) checkAnswer(q request, got *response) {
	t := w.t
	t.Helper()
	id := got.header.Get("X-Request-Id")
	w.mu.Lock()
	if id == "" || w.seen[id] {
		t.Errorf("%s: request id %q is not fresh", q.do, id)
	}
	w.seen[id] = true
	w.mu.Unlock()
	if got.header.Get("Set-Cookie") != "" || got.header.Get("Date") == "" {
		t.Errorf("%s: headers %v", q.do, got.header)
	}
	if strings.Contains(got.header.Get("Content-Type"), "json") && got.body != "" {
		if err := json.Unmarshal([]byte(got.body), &got.doc); err != nil && got.status < 400 {
			t.Errorf("%s: %v in %s", q.do, err, got.body)
		}
	}
	if got.status >= 400 {
		var p struct {
			Type   string
			Status int
		}
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: status %d is no problem: %q", q.do, got.status, got.body)
			return
		}
		got.code = strings.TrimPrefix(p.Type, "/problems/")
		if p.Status != got.status {
			t.Errorf("%s: status member %d, wire %d", q.do, p.Status, got.status)
		}
		for _, name := range []string{"Location", httpapi.ReplayedHeader} {
			if v := got.header.Get(name); v != "" {
				t.Errorf("%s: a refusal carries %s: %q", q.do, name, v)
			}
		}
	}
	if task := got.doc.Task; task != nil {
		if location := got.header.Get("Location"); location != "/v1/tasks/"+task.ID {
			t.Errorf("%s: Location %q of task %s", q.do, location, task.ID)
		}
		if replayed := got.header.Get(httpapi.ReplayedHeader); (got.status == 200) != (replayed == "true") {
			t.Errorf("%s: status %d with %s %q", q.do, got.status, httpapi.ReplayedHeader, replayed)
		}
	}
}

// conversation makes one and returns its id.
func (w *world) conversation(as string) string {
	w.t.Helper()
	r := w.send(request{do: "POST /v1/conversations", as: as, body: `{}`})
	if r.status != http.StatusCreated {
		w.t.Fatalf("creating a conversation: %d %s", r.status, r.body)
	}
	return r.doc.ID
}

// ended waits for a task's end and returns it.
func (w *world) ended(task string) response {
	w.t.Helper()
	r := w.send(request{do: "GET /v1/tasks/" + task + "?wait=30s"})
	if r.doc.Status == "queued" || r.doc.Status == "running" {
		w.t.Fatalf("task %s has not ended: %s", task, r.body)
	}
	return r
}

// counts are the rows that submissions leave.
type counts struct{ tasks, messages, keys int }

func (w *world) counts() counts {
	w.t.Helper()
	var c counts
	row := w.store.Reader().QueryRowContext(w.t.Context(),
		"SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM messages), (SELECT count(*) FROM submissions)")
	if err := row.Scan(&c.tasks, &c.messages, &c.keys); err != nil {
		w.t.Fatal(err)
	}
	return c
}
