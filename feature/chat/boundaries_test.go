package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/onereplytest"
	"github.com/onereply/onereply/provider/openai"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/tables"
)

// answerText is what the model of the boundaries says.
var answerText = []string{"It ", "depends ", "on ", "what ", "you ", "mean."}

// speak writes an answer as chat completions are streamed.
func speak(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i, word := range answerText {
		finish := "null"
		if i == len(answerText)-1 {
			finish = `"stop"`
		}
		text, err := json.Marshal(word)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","+
			"\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":%s}]}\n\n", text, finish)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// overTheWire is the chat on the world's file, asking a model over its real wire.
func overTheWire(t *testing.T, w *onereplytest.World) (*chat.Service, *tables.Chat) {
	t.Helper()
	rows, err := tables.NewChat(tables.Database{
		Read:   tables.SQL(w.DB()),
		Unwrap: func(tx onereply.Tx) tables.Querier { return tables.SQL(sqlite.Unwrap(tx)) },
		Now:    w.Store.Now, Fault: sqlite.Fault,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Provider.Handle(http.HandlerFunc(speak))
	model, err := openai.NewCompatible("m", "http://model.example/v1", "", w.Provider)
	if err != nil {
		t.Fatal(err)
	}
	s, err := chat.New(chat.Config{Store: rows, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	return s, rows
}

func TestRepliesHoldAtEveryBoundary(t *testing.T) {
	t.Parallel()
	onereplytest.Boundaries(t, func(t *testing.T, w *onereplytest.World) onereplytest.Case {
		s, rows := overTheWire(t, w)
		sent := w.Recorder()
		s.Bind(sent)
		c := conversation(t, w, rows)
		return onereplytest.Case{
			Kind: s.Kind(),
			Submission: func(i int, key string) (onereply.Submission, error) {
				_, err := s.Send(t.Context(), chat.SendRequest{Scope: "default", Key: key, Conversation: c, Text: fmt.Sprint("question ", i)})
				if err != nil {
					return onereply.Submission{}, err
				}
				return sent.Take()
			},
			Created: onereplytest.Query(`SELECT task_id FROM messages WHERE role = 'user'`),
			Ended:   onereplytest.Query(`SELECT task_id FROM messages WHERE role = 'assistant'`),
			Check:   func(t testing.TB, snap onereplytest.Snapshot) { paired(t, rows, c, snap) },
		}
	})
}

func TestRegeneratedRepliesHoldAtEveryBoundary(t *testing.T) {
	t.Parallel()
	onereplytest.Boundaries(t, func(t *testing.T, w *onereplytest.World) onereplytest.Case {
		s, rows := overTheWire(t, w)
		sent := w.Recorder()
		s.Bind(sent)
		c := conversation(t, w, rows)
		question := chat.NewMessage{Scope: "default", Message: chat.Message{
			ID: "question", ConversationID: c, Role: chat.User, Text: "what then?", CreatedAt: time.Now(), TaskID: "before",
		}}
		err := w.Store.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
			_, err := rows.AddMessages(ctx, tx, []chat.NewMessage{question})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return onereplytest.Case{
			Kind: s.Kind(),
			Submission: func(_ int, key string) (onereply.Submission, error) {
				if _, err := s.Regenerate(t.Context(), chat.RegenerateRequest{Scope: "default", Key: key, Message: "question"}); err != nil {
					return onereply.Submission{}, err
				}
				return sent.Take()
			},
			Created: onereplytest.Query(`SELECT task_id FROM regenerations`),
			Ended:   onereplytest.Query(`SELECT task_id FROM messages WHERE role = 'assistant'`),
			Check:   func(t testing.TB, snap onereplytest.Snapshot) { paired(t, rows, c, snap) },
		}
	})
}

func conversation(t *testing.T, w *onereplytest.World, rows *tables.Chat) string {
	t.Helper()
	err := w.Store.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
		return rows.AddConversation(ctx, tx, "default", chat.Conversation{ID: "c", CreatedAt: time.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	return "c"
}

// paired checks what a person sees: every answer belongs to its question and is
// whole, and each question shows one answer at most.
func paired(t testing.TB, rows *tables.Chat, conversation string, s onereplytest.Snapshot) {
	t.Helper()
	messages, err := rows.Messages(t.Context(), "default", conversation)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	for _, m := range messages {
		if m.Role == chat.User {
			continue
		}
		if m.Text != "It depends on what you mean." {
			t.Errorf("message %s says %q", m.ID, m.Text)
		}
		if !slices.ContainsFunc(messages, func(q chat.Message) bool { return q.ID == m.ReplyTo && q.Role == chat.User }) {
			t.Errorf("message %s answers %q, which is no question", m.ID, m.ReplyTo)
		}
		if m.Shown != nil && *m.Shown {
			shown[m.ReplyTo]++
		}
	}
	for question, n := range shown {
		if n != 1 {
			t.Errorf("question %s shows %d answers", question, n)
		}
	}
	for _, task := range s.Tasks {
		if (task.Status == onereply.StatusCompleted) != slices.ContainsFunc(messages, func(m chat.Message) bool {
			return m.TaskID == task.ID && m.Role == chat.Assistant
		}) {
			t.Errorf("task %s is %s, and its answer is not there or should not be", task.ID, task.Status)
		}
	}
}
