package tables_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/provider"
)

// texts is a conversation at a glance.
func texts(messages []chat.Message) (seen []string) {
	for _, m := range messages {
		s := string(m.Role) + ": " + m.Text
		if m.Shown != nil && !*m.Shown {
			s += " (hidden)"
		}
		seen = append(seen, s)
	}
	return seen
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestAQuestionGetsItsReply(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		w.model.says("A1")
		c := w.conversation()
		documents := []chat.DocumentVersion{{ID: "d2", Version: 2}, {ID: "d1", Version: 1}}
		sent, err := w.chat.Send(t.Context(), chat.SendRequest{Scope: scope, Key: "k", Conversation: c.ID, Text: "Q1", Documents: documents})
		if err != nil {
			t.Fatal(err)
		}
		task := w.end(sent.Task.ID)
		messages := w.messages(c.ID)
		same(t, "messages", []string{"user: Q1", "assistant: A1"}, texts(messages))
		same(t, "the question", sent.Message, messages[0])
		shown := true
		same(t, "the answer", chat.Message{
			ID: messages[1].ID, ConversationID: c.ID, Role: chat.Assistant, Text: "A1", CreatedAt: task.EndedAt,
			TaskID: task.ID, ReplyTo: sent.Message.ID, Shown: &shown,
		}, messages[1])
		if !strings.Contains(string(task.Response), `"message_id":"`+messages[1].ID+`"`) || task.Status != onereply.StatusCompleted {
			t.Errorf("task %s with response %s", task.Status, task.Response)
		}
		one, err := w.rows.Message(t.Context(), scope, messages[1].ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "one message and the same in the list", messages[1], one)
	})
}

func TestTheSameKeySendsOnce(t *testing.T) {
	t.Parallel()
	within(t, true, func(t *testing.T, w *world) {
		c := w.conversation()
		r := chat.SendRequest{Scope: scope, Key: "k", Conversation: c.ID, Text: "Q1"}
		const presses = 20
		results := make([]chat.Sent, presses)
		var all sync.WaitGroup
		for i := range presses {
			all.Go(func() {
				var err error
				if results[i], err = w.chat.Send(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		created := 0
		for _, s := range results {
			if s.Created {
				created++
			}
			same(t, "message", results[0].Message, s.Message)
			same(t, "task", results[0].Task.ID, s.Task.ID)
		}
		if created != 1 || w.count("messages") != 1 || w.count("tasks") != 1 {
			t.Errorf("%d created, %d messages, %d tasks", created, w.count("messages"), w.count("tasks"))
		}
		r.Text = "Q2"
		if _, err := w.chat.Send(t.Context(), r); !errors.Is(err, onereply.ErrKeyReused) {
			t.Errorf("other text under the key: %v", err)
		}
		r.Text, r.Conversation = "Q1", w.conversation().ID
		if _, err := w.chat.Send(t.Context(), r); !errors.Is(err, onereply.ErrKeyReused) {
			t.Errorf("other conversation under the key: %v", err)
		}
		if w.count("messages") != 1 || w.count("tasks") != 1 {
			t.Error("a refused request wrote something")
		}
	})
}

func TestAConversationIsCreatedOncePerKey(t *testing.T) {
	t.Parallel()
	within(t, true, func(t *testing.T, w *world) {
		n := chat.NewConversation{Scope: scope, Key: "k", Title: "Plans"}
		first, created, err := w.chat.CreateConversation(t.Context(), n)
		if err != nil || !created {
			t.Fatal(created, err)
		}
		again, created, err := w.chat.CreateConversation(t.Context(), n)
		if err != nil || created {
			t.Error(created, err)
		}
		same(t, "replay", first, again)
		thread, err := w.chat.Conversation(t.Context(), scope, first.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "as read", chat.Thread{Conversation: first, Messages: []chat.Message{}}, thread)
		if now := time.Now().UTC(); !first.CreatedAt.Equal(now.Truncate(time.Millisecond)) {
			t.Errorf("created at %v, the store's clock says %v", first.CreatedAt, now)
		}
		n.Title = "Other plans"
		if _, _, err := w.chat.CreateConversation(t.Context(), n); !errors.Is(err, onereply.ErrKeyReused) {
			t.Errorf("other title under the key: %v", err)
		}
		n.Key, n.Title = "", "two\nlines"
		if _, _, err := w.chat.CreateConversation(t.Context(), n); !errors.Is(err, onereply.ErrInvalid) {
			t.Errorf("a title of two lines: %v", err)
		}
		if w.count("conversations") != 1 {
			t.Errorf("%d conversations", w.count("conversations"))
		}
	})
}

func TestTitles(t *testing.T) {
	t.Parallel()
	within(t, true, func(t *testing.T, w *world) {
		long := strings.Repeat("wörd ", 30)
		for _, c := range []struct{ name, given, first, want string }{
			{"given", "Mine", "Q1", "Mine"},
			{"from the first line", "", "\r\n  What is\tthis?  \nmore", "What is this?"},
			{"cut to 80 characters", "", long, string([]rune(long)[:79]) + "…"},
		} {
			made, _, err := w.chat.CreateConversation(t.Context(), chat.NewConversation{Scope: scope, Title: c.given})
			if err != nil {
				t.Fatal(err)
			}
			w.send(made.ID, c.first)
			w.send(made.ID, "second message")
			thread, err := w.chat.Conversation(t.Context(), scope, made.ID)
			if err != nil {
				t.Fatal(err)
			}
			same(t, c.name, c.want, thread.Title)
		}
	})
}

func TestListsOfConversations(t *testing.T) {
	t.Parallel()
	within(t, true, func(t *testing.T, w *world) {
		var want, got []string
		for range 5 {
			want = append([]string{w.conversation().ID}, want...)
		}
		if _, _, err := w.chat.CreateConversation(t.Context(), chat.NewConversation{Scope: "other"}); err != nil {
			t.Fatal(err)
		}
		after, pages := "", 0
		for more := true; more; more = after != "" {
			page, next, err := w.chat.Conversations(t.Context(), scope, 2, after)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page {
				got = append(got, c.ID)
			}
			after = next
			if pages++; pages > 3 {
				t.Fatal("the pages do not end")
			}
		}
		same(t, "newest first, each once", want, got)
		if page, next, err := w.chat.Conversations(t.Context(), scope, 5, ""); err != nil || len(page) != 5 || next != "" {
			t.Errorf("a page that holds all: %d, next %q, %v", len(page), next, err)
		}
	})
}

func TestAnotherScopesThingsAreNotThere(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		w.model.says("A1")
		c := w.conversation()
		w.ask(c.ID, "Q1")
		sent, _ := w.ask(c.ID, "Q2")
		ctx := t.Context()
		_, seen := w.chat.Conversation(ctx, "other", c.ID)
		_, said := w.chat.Send(ctx, chat.SendRequest{Scope: "other", Key: "x", Conversation: c.ID, Text: "Q"})
		_, asked := w.chat.Regenerate(ctx, chat.RegenerateRequest{Scope: "other", Key: "y", Message: sent.Message.ID})
		deleted := w.chat.DeleteConversation(ctx, "other", c.ID)
		_, read := w.rows.Message(ctx, "other", sent.Message.ID)
		for what, err := range map[string]error{"see": seen, "send": said, "regenerate": asked, "delete": deleted, "read": read} {
			if !errors.Is(err, onereply.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if turns, err := w.rows.History(ctx, "other", sent.Message.ID); err != nil || turns != nil {
			t.Errorf("history %v %v", turns, err)
		}
		if list, err := w.rows.Messages(ctx, "other", c.ID); err != nil || list != nil {
			t.Errorf("messages %v %v", list, err)
		}
		// The hooks' writes look for themselves.
		err := w.engine.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
			messages, err := w.rows.AddMessages(ctx, tx, []chat.NewMessage{{Scope: "other", Message: chat.Message{ID: "x", ConversationID: c.ID, Role: chat.User}}})
			regenerations, err2 := w.rows.AddRegenerations(ctx, tx, []chat.Regeneration{
				{Scope: "other", Conversation: c.ID, Message: sent.Message.ID, Task: "x"}, {Scope: scope, Conversation: c.ID, Message: "gone", Task: "y"},
			})
			ids, err3 := w.rows.Unanswered(ctx, tx, "other", c.ID)
			if messages[0] || regenerations[0] || regenerations[1] || ids != nil {
				t.Errorf("saved %v and %v, found %v", messages, regenerations, ids)
			}
			return errors.Join(err, err2, err3)
		})
		if err != nil {
			t.Error(err)
		}
		same(t, "it is as it was", []string{"user: Q1", "assistant: A1", "user: Q2", "assistant: A1"}, texts(w.messages(c.ID)))
		if n := w.count("tasks"); n != 2 {
			t.Errorf("%d tasks", n)
		}
	})
}

// TestARegenerateThatFailsKeepsTheAnswer is case 37: A1 stays shown while the
// second answer fails, a double press is one task, and once there is an A2 it is
// what is shown and what the next turn is told.
func TestARegenerateThatFailsKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		w.model.says("A1")
		c := w.conversation()
		first, _ := w.ask(c.ID, "Q1")

		w.model.fails(onereply.RefusedPermanent(onereply.CodeProviderRejected, errors.New("no")))
		press, double := w.regenerate(first.Message.ID, "r1"), w.regenerate(first.Message.ID, "r1")
		if !press.Created || double.Created || press.Task.ID != double.Task.ID || press.Task.ID == first.Task.ID {
			t.Errorf("pressed twice: %v %s, %v %s", press.Created, press.Task.ID, double.Created, double.Task.ID)
		}
		if task := w.end(press.Task.ID); task.Status != onereply.StatusFailed {
			t.Errorf("second answer %s", task.Status)
		}
		messages := w.messages(c.ID)
		same(t, "after the failure", []string{"user: Q1", "assistant: A1"}, texts(messages))
		same(t, "the question's newest task", press.Task.ID, messages[0].TaskID)

		w.model.says("A2")
		next := w.regenerate(first.Message.ID, "r2")
		w.end(next.Task.ID)
		messages = w.messages(c.ID)
		same(t, "siblings", []string{"user: Q1", "assistant: A1 (hidden)", "assistant: A2"}, texts(messages))
		same(t, "the question's newest task", next.Task.ID, messages[0].TaskID)
		replay, err := w.chat.Send(t.Context(), chat.SendRequest{Scope: scope, Key: "key-1", Conversation: c.ID, Text: "Q1"})
		if err != nil || replay.Created || replay.Task.ID != first.Task.ID || replay.Message.TaskID != next.Task.ID {
			t.Errorf("replay of the first press: %+v %v", replay, err)
		}

		w.model.says("B1")
		w.ask(c.ID, "Q2")
		calls := w.model.calls()
		same(t, "regenerating is asked without the old answer", []provider.Message{{Role: provider.User, Text: "Q1"}}, calls[2])
		same(t, "the next turn is told the chosen answer only", []provider.Message{
			{Role: provider.User, Text: "Q1"}, {Role: provider.Assistant, Text: "A2"}, {Role: provider.User, Text: "Q2"},
		}, calls[3])

		w.end(w.regenerate(first.Message.ID, "r3").Task.ID)
		same(t, "an earlier question is not told what came after it", []provider.Message{{Role: provider.User, Text: "Q1"}}, w.model.calls()[4])
	})
}

// TestHistoryLeavesOutWhatHasNoAnswer is case 27's next turn, and more of its
// kind: failed, cancelled and running questions, and those after the question.
func TestHistoryLeavesOutWhatHasNoAnswer(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		c := w.conversation()
		w.model.fails(onereply.RefusedPermanent(onereply.CodeContentFiltered, errors.New("no")))
		_, filtered := w.ask(c.ID, "filtered")
		same(t, "filtered", []any{onereply.StatusFailed, onereply.CodeContentFiltered, 1},
			[]any{filtered.Status, filtered.Error.Code, filtered.Budget.Calls.Used})
		w.model.says("good")
		w.ask(c.ID, "Q1")
		w.model.script(func(ctx context.Context, question string, _ func(string) error) (string, error) {
			if question != "now" {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return "yes", nil
		})
		cancelled, running := w.send(c.ID, "cancelled"), w.send(c.ID, "running")
		if _, err := w.engine.Cancel(t.Context(), scope, cancelled.Task.ID); err != nil {
			t.Fatal(err)
		}
		now := w.send(c.ID, "now")
		w.send(c.ID, "after")
		w.end(now.Task.ID)
		want := []provider.Message{{Role: provider.User, Text: "Q1"}, {Role: provider.Assistant, Text: "good"}, {Role: provider.User, Text: "now"}}
		found := false
		for _, messages := range w.model.calls() {
			if messages[len(messages)-1].Text == "now" {
				found = true
				same(t, "what the model was told", want, messages)
			}
		}
		if !found {
			t.Error("the model was not asked")
		}
		same(t, "no empty bubbles", []string{
			"user: filtered", "user: Q1", "assistant: good", "user: cancelled", "user: running", "user: now", "user: after", "assistant: yes",
		}, texts(w.messages(c.ID)))
		if _, err := w.engine.Cancel(t.Context(), scope, running.Task.ID); err != nil {
			t.Fatal(err)
		}
	})
}

func TestManyTurnsAtOnceKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		w.model.script(func(_ context.Context, question string, _ func(string) error) (string, error) {
			return "to " + question, nil
		})
		c := w.conversation()
		const turns = 30
		var all sync.WaitGroup
		for i := range turns {
			all.Go(func() {
				s, err := w.chat.Send(t.Context(), chat.SendRequest{Scope: scope, Key: fmt.Sprint(i), Conversation: c.ID, Text: fmt.Sprintf("Q%d", i)})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := w.engine.Wait(t.Context(), scope, s.Task.ID); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		questions := map[string]string{}
		answers := 0
		for _, m := range w.messages(c.ID) {
			switch m.Role {
			case chat.User:
				questions[m.ID] = m.Text
			case chat.Assistant:
				answers++
				if m.Text != "to "+questions[m.ReplyTo] {
					t.Errorf("%q answers %q", m.Text, questions[m.ReplyTo])
				}
			}
		}
		if len(questions) != turns || answers != turns {
			t.Errorf("%d questions, %d answers", len(questions), answers)
		}
	})
}
