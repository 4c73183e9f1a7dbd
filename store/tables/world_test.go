package tables_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/tables"
)

const scope = "default"

// world is the chat on a real file with a real engine, in a synctest bubble.
type world struct {
	t      *testing.T
	store  *sqlite.Store
	rows   *tables.Chat
	chat   *chat.Service
	engine *engine.Engine
	model  *model
	keys   int
}

// within runs a test in a world of its own. The engine runs unless idle.
func within(t *testing.T, idle bool, f func(t *testing.T, w *world)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chat.db")
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, model: &model{}}
		w.open(path)
		if !idle {
			w.run()
		}
		f(t, w)
	})
}

func (w *world) open(path string) {
	w.t.Helper()
	db, err := sqlite.Open(w.t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.store = db
	w.rows, err = tables.NewChat(database(db))
	if err != nil {
		w.t.Fatal(err)
	}
	w.chat, err = chat.New(chat.Config{Store: w.rows, Model: w.model, Policy: onereply.Policy{MaxAttempts: 2, MaxCalls: 2}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.engine, err = engine.New(engine.Options{
		Store: db, Kinds: []onereply.Kind{w.chat.Kind()}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.chat.Bind(w.engine)
}

func database(db *sqlite.Store) tables.Database {
	return tables.Database{
		Read:   tables.SQL(db.Reader()),
		Unwrap: func(tx onereply.Tx) tables.Querier { return tables.SQL(sqlite.Unwrap(tx)) },
		Now:    db.Now,
		Fault:  sqlite.Fault,
	}
}

func (w *world) run() {
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.engine.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// model answers by what the test has put in place, and keeps what it was asked.
type model struct {
	mu     sync.Mutex
	asked  [][]provider.Message
	answer func(ctx context.Context, question string, emit func(string) error) (string, error)
}

func (*model) Name() string { return "scripted" }

func (m *model) Start(ctx context.Context, c onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
	if err := c.Send(); err != nil {
		return provider.Answer{}, err
	}
	m.mu.Lock()
	m.asked = append(m.asked, r.Messages)
	answer := m.answer
	m.mu.Unlock()
	text, err := answer(ctx, r.Messages[len(r.Messages)-1].Text, emit)
	return provider.Answer{Text: text, Model: "m-1", FinishReason: "stop", Usage: onereply.Usage{InputTokens: 1, OutputTokens: 2}}, err
}

func (m *model) script(answer func(ctx context.Context, question string, emit func(string) error) (string, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

func (m *model) says(text string) {
	m.script(func(context.Context, string, func(string) error) (string, error) { return text, nil })
}

func (m *model) fails(err error) {
	m.script(func(context.Context, string, func(string) error) (string, error) { return "", err })
}

// calls returns what the model was asked so far.
func (m *model) calls() [][]provider.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([][]provider.Message(nil), m.asked...)
}

func (w *world) key() string {
	w.keys++
	return fmt.Sprintf("key-%d", w.keys)
}

func (w *world) conversation() chat.Conversation {
	w.t.Helper()
	c, created, err := w.chat.CreateConversation(w.t.Context(), chat.NewConversation{Scope: scope})
	if err != nil || !created {
		w.t.Fatal(created, err)
	}
	return c
}

func (w *world) send(conversation, text string) chat.Sent {
	w.t.Helper()
	s, err := w.chat.Send(w.t.Context(), chat.SendRequest{Scope: scope, Key: w.key(), Conversation: conversation, Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// ask sends and waits for the end of the task.
func (w *world) ask(conversation, text string) (chat.Sent, onereply.Task) {
	w.t.Helper()
	s := w.send(conversation, text)
	return s, w.end(s.Task.ID)
}

func (w *world) regenerate(message, key string) chat.Regenerated {
	w.t.Helper()
	r, err := w.chat.Regenerate(w.t.Context(), chat.RegenerateRequest{Scope: scope, Key: key, Message: message})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) end(id onereply.TaskID) onereply.Task {
	w.t.Helper()
	task, err := w.engine.Wait(w.t.Context(), scope, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return task
}

func (w *world) messages(conversation string) []chat.Message {
	w.t.Helper()
	thread, err := w.chat.Conversation(w.t.Context(), scope, conversation)
	if err != nil {
		w.t.Fatal(err)
	}
	return thread.Messages
}

// count counts the rows of a table.
func (w *world) count(table string) (n int) {
	w.t.Helper()
	if err := w.store.Reader().QueryRowContext(w.t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) gone(conversation string) {
	w.t.Helper()
	if _, err := w.chat.Conversation(w.t.Context(), scope, conversation); !errors.Is(err, onereply.ErrNotFound) {
		w.t.Errorf("conversation %s: %v, want not found", conversation, err)
	}
}
