package tables_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/store/tables"
)

// TestDeleteDuringGeneration is case 39: the running reply is cancelled and its
// call aborted, nothing brings the conversation back, and another one that is
// being answered at the same time is not touched.
func TestDeleteDuringGeneration(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		var mu sync.Mutex
		started, aborted := make(chan string, 3), map[string]error{}
		finish := make(chan struct{})
		w.model.script(func(ctx context.Context, question string, emit func(string) error) (string, error) {
			if err := emit("so "); err != nil {
				return "", err
			}
			started <- question
			select {
			case <-finish:
				return "answer to " + question, nil
			case <-ctx.Done():
				mu.Lock()
				defer mu.Unlock()
				aborted[question] = context.Cause(ctx)
				return "a late answer", nil // as if it came whole all the same
			}
		})
		doomed, other := w.conversation(), w.conversation()
		first := w.send(doomed.ID, "doomed")
		kept := w.send(other.ID, "kept")
		again := w.regenerate(first.Message.ID, "again") // two tasks for one question
		for range 3 {
			<-started
		}
		if err := w.chat.DeleteConversation(t.Context(), scope, doomed.ID); err != nil {
			t.Fatal(err)
		}
		w.gone(doomed.ID)
		for _, id := range []onereply.TaskID{first.Task.ID, again.Task.ID} {
			if task := w.end(id); task.Status != onereply.StatusCancelled || task.Response != nil {
				t.Errorf("task %s is %s with %s", id, task.Status, task.Response)
			}
		}
		close(finish)
		if task := w.end(kept.Task.ID); task.Status != onereply.StatusCompleted {
			t.Errorf("the other conversation's task is %s", task.Status)
		}
		same(t, "the other conversation", []string{"user: kept", "assistant: answer to kept"}, texts(w.messages(other.ID)))
		mu.Lock()
		same(t, "aborted calls", 1, len(aborted))
		if !errors.Is(aborted["doomed"], onereply.ErrCancelled) {
			t.Errorf("the call ended because of %v", aborted["doomed"])
		}
		mu.Unlock()

		w.gone(doomed.ID)
		if err := w.chat.DeleteConversation(t.Context(), scope, doomed.ID); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("deleted again: %v", err)
		}
		for _, key := range []string{"key-1", "new"} { // key-1 sent the message
			if _, err := w.chat.Send(t.Context(), chat.SendRequest{Scope: scope, Key: key, Conversation: doomed.ID, Text: "doomed"}); !errors.Is(err, onereply.ErrNotFound) {
				t.Errorf("sent again with %s: %v", key, err)
			}
		}
		if _, err := w.chat.Regenerate(t.Context(), chat.RegenerateRequest{Scope: scope, Key: "again", Message: first.Message.ID}); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("regenerated again: %v", err)
		}
		if w.count("messages") != 2 || w.count("regenerations") != 0 || w.count("conversations") != 1 {
			t.Errorf("left over: %d messages, %d regenerations, %d conversations", w.count("messages"), w.count("regenerations"), w.count("conversations"))
		}
	})
}

// TestAResumedTaskIsCancelledToo: a failed task leaves no message and may run
// again, so a deletion must still know of it.
func TestAResumedTaskIsCancelledToo(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		c := w.conversation()
		w.model.fails(onereply.RefusedPermanent(onereply.CodeProviderRejected, errors.New("no")))
		_, failed := w.ask(c.ID, "Q1")
		started := make(chan struct{})
		w.model.script(func(ctx context.Context, _ string, _ func(string) error) (string, error) {
			close(started)
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		if _, err := w.engine.Resume(t.Context(), resumption(failed.ID)); err != nil {
			t.Fatal(err)
		}
		<-started
		if err := w.chat.DeleteConversation(t.Context(), scope, c.ID); err != nil {
			t.Fatal(err)
		}
		if task := w.end(failed.ID); task.Status != onereply.StatusCancelled {
			t.Errorf("the resumed task is %s", task.Status)
		}
		w.gone(c.ID)
	})
}

// TestAResumedTaskOfADeletedConversationIsNotPaidFor: a failed task outlives its
// conversation by its retention.
func TestAResumedTaskOfADeletedConversationIsNotPaidFor(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		c := w.conversation()
		w.model.fails(onereply.RefusedPermanent(onereply.CodeProviderRejected, errors.New("no")))
		_, failed := w.ask(c.ID, "Q1")
		if task := w.end(failed.ID); task.Status != onereply.StatusFailed {
			t.Fatalf("the task is %s", task.Status)
		}
		if err := w.chat.DeleteConversation(t.Context(), scope, c.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.engine.Resume(t.Context(), resumption(failed.ID)); err != nil {
			t.Fatal(err)
		}
		task := w.end(failed.ID)
		if task.Status != onereply.StatusFailed || task.Error == nil || task.Error.Code != chat.CodeDeleted || task.Budget.Calls.Used != 1 {
			t.Errorf("%s %+v after %d calls", task.Status, task.Error, task.Budget.Calls.Used)
		}
		w.gone(c.ID)
	})
}

// TestAnAnsweredSiblingHidesNoRunningTask: the first press still runs while the
// second has been answered.
func TestAnAnsweredSiblingHidesNoRunningTask(t *testing.T) {
	t.Parallel()
	within(t, false, func(t *testing.T, w *world) {
		c := w.conversation()
		started := make(chan struct{})
		w.model.script(func(ctx context.Context, _ string, _ func(string) error) (string, error) {
			close(started)
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		first := w.send(c.ID, "Q1")
		<-started
		w.model.says("A1")
		w.end(w.regenerate(first.Message.ID, "again").Task.ID)
		if err := w.chat.DeleteConversation(t.Context(), scope, c.ID); err != nil {
			t.Fatal(err)
		}
		if task := w.end(first.Task.ID); task.Status != onereply.StatusCancelled {
			t.Errorf("the first task is %s", task.Status)
		}
	})
}

// TestASendThatMeetsADeletionIsUndone: the conversation goes between the look
// and the write, which only the Created hook can see.
func TestASendThatMeetsADeletionIsUndone(t *testing.T) {
	t.Parallel()
	within(t, true, func(t *testing.T, w *world) {
		c := w.conversation()
		first := w.send(c.ID, "Q1")
		late := &lateDeletion{Chat: w.rows, delete: func() {
			if err := w.chat.DeleteConversation(t.Context(), scope, c.ID); err != nil {
				t.Error(err)
			}
		}}
		s, err := chat.New(chat.Config{Store: late, Model: w.model})
		if err != nil {
			t.Fatal(err)
		}
		s.Bind(w.engine)
		if _, err := s.Send(t.Context(), chat.SendRequest{Scope: scope, Key: "late", Conversation: c.ID, Text: "Q2"}); !errors.Is(err, onereply.ErrNotFound) {
			t.Errorf("sent: %v", err)
		}
		if w.count("tasks") != 1 || w.count("submissions") != 1 || w.count("messages") != 0 {
			t.Errorf("%d tasks, %d submissions, %d messages", w.count("tasks"), w.count("submissions"), w.count("messages"))
		}
		if task := w.end(first.Task.ID); task.Status != onereply.StatusCancelled {
			t.Errorf("the first task is %s", task.Status)
		}
	})
}

// TestADeletionThatMeetsASendStartsOver: a task that is not among the cancelled
// ones keeps the conversation, until it is.
func TestADeletionThatMeetsASendStartsOver(t *testing.T) {
	t.Parallel()
	within(t, true, func(t *testing.T, w *world) {
		c := w.conversation()
		first, second := w.send(c.ID, "Q1"), w.send(c.ID, "Q2")
		s, err := chat.New(chat.Config{Store: &forgetful{Chat: w.rows, times: 1}, Model: w.model})
		if err != nil {
			t.Fatal(err)
		}
		s.Bind(w.engine)
		if err := s.DeleteConversation(t.Context(), scope, c.ID); err != nil {
			t.Fatal(err)
		}
		for _, sent := range []chat.Sent{first, second} {
			if task := w.end(sent.Task.ID); task.Status != onereply.StatusCancelled {
				t.Errorf("%q is %s", sent.Message.Text, task.Status)
			}
		}
		w.gone(c.ID)

		c = w.conversation()
		kept := w.send(c.ID, "Q1")
		s, err = chat.New(chat.Config{Store: &forgetful{Chat: w.rows, times: 100}, Model: w.model})
		if err != nil {
			t.Fatal(err)
		}
		s.Bind(w.engine)
		if err := s.DeleteConversation(t.Context(), scope, c.ID); !errors.Is(err, onereply.ErrUnavailable) {
			t.Errorf("a deletion that never catches up: %v", err)
		}
		if task, err := w.engine.Task(t.Context(), scope, kept.Task.ID); err != nil || task.Status != onereply.StatusQueued {
			t.Errorf("it was undone, yet the task is %s, %v", task.Status, err)
		}
		same(t, "it is still there", []string{"user: Q1"}, texts(w.messages(c.ID)))
	})
}

// TestALateAnswerHasNowhereToGo: even an accept that a hook were to run after
// the deletion adds no message.
func TestALateAnswerHasNowhereToGo(t *testing.T) {
	t.Parallel()
	within(t, true, func(t *testing.T, w *world) {
		c := w.conversation()
		sent := w.send(c.ID, "Q1")
		if err := w.chat.DeleteConversation(t.Context(), scope, c.ID); err != nil {
			t.Fatal(err)
		}
		task := sent.Task
		task.Status, task.Response = onereply.StatusCompleted, json.RawMessage(`{"message_id":"late","text":"late"}`)
		task.Input = json.RawMessage(`{"conversation":"` + c.ID + `","message":"` + sent.Message.ID + `","text":"Q1"}`)
		err := w.engine.InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
			return w.chat.Kind().Ended(ctx, tx, []onereply.Task{task})
		})
		if err != nil || w.count("messages") != 0 {
			t.Errorf("%v, %d messages", err, w.count("messages"))
		}
	})
}

func resumption(id onereply.TaskID) engine.Resumption {
	return engine.Resumption{Scope: scope, Task: id, Key: "resume"}
}

// lateDeletion deletes the conversation after it was seen.
type lateDeletion struct {
	*tables.Chat
	delete func()
}

func (l *lateDeletion) Conversation(ctx context.Context, scope, id string) (chat.Conversation, error) {
	c, err := l.Chat.Conversation(ctx, scope, id)
	if err == nil {
		l.delete()
	}
	return c, err
}

// forgetful misses a task so many times, as a look does that comes before
// someone's Send has committed.
type forgetful struct {
	*tables.Chat
	times int
}

func (f *forgetful) Unanswered(ctx context.Context, tx onereply.Tx, scope, conversation string) ([]onereply.TaskID, error) {
	ids, err := f.Chat.Unanswered(ctx, tx, scope, conversation)
	if f.times > 0 && len(ids) > 0 {
		f.times--
		ids = ids[:len(ids)-1]
	}
	return ids, err
}
