package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
)

// newMessage is the body of a press of Send.
type newMessage struct {
	Text      *string                `json:"text"`
	Documents []chat.DocumentVersion `json:"documents"`
	Policy    struct {
		OnUnknownOutcome *onereply.UnknownPolicy `json:"on_unknown_outcome"`
		Deadline         *time.Time              `json:"deadline"`
	} `json:"policy"`
}

// sendMessage answers POST /v1/conversations/{id}/messages.
//
// The text's limit is judged with the body's (413), before the key: to that end
// the body is decoded first, and what decoding found is told after the key.
func (h *handler) sendMessage(w http.ResponseWriter, r *http.Request, scope string) error {
	raw, err := readJSON(w, r, h.messageBody())
	if p := (*problem)(nil); errors.As(err, &p) && p.code == codeTooLarge {
		return h.textTooLarge() // the text is what makes a message large, and its limit the one to know
	}
	if err != nil {
		return err
	}
	var body newMessage
	sent, bad := decodeBound(raw, &body)
	if body.Text != nil && len(*body.Text) > h.MaxMessage {
		return h.textTooLarge()
	}
	key, err := requireKey(r.Header)
	if err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	press, err := body.request()
	if err != nil {
		return err
	}
	if press.Conversation, err = pathID(r); err != nil {
		return err
	}
	press.Scope, press.Key, press.Bound = scope, key, sent
	ctx, cancel := detached(r)
	defer cancel()
	done, err := h.Chat.Send(ctx, press)
	if err != nil {
		return err
	}
	return h.answerSubmitted(w, r, done.Task, done.Created, func(t taskJSON) any {
		return struct {
			Message chat.Message `json:"message"`
			Task    taskJSON     `json:"task"`
		}{done.Message, t}
	})
}

func (h *handler) textTooLarge() *problem {
	return newProblem(codeTooLarge, fmt.Sprintf("A message's text may have %d bytes.", h.MaxMessage)).
		with("max_bytes", h.MaxMessage).with("pointer", "/text")
}

// messageBody is how many bytes the body of a message may have: JSON can spell
// every byte of a text with six of its own, and the rest of the body is small.
func (h *handler) messageBody() int64 { return 6*int64(h.MaxMessage) + smallBody }

// request checks what the body's types leave open.
func (m newMessage) request() (chat.SendRequest, error) {
	if m.Text == nil {
		return chat.SendRequest{}, newProblem(codeInvalidRequest, "The message needs a text.").with("pointer", "/text")
	}
	r := chat.SendRequest{Text: *m.Text, Documents: m.Documents}
	if p := m.Policy.OnUnknownOutcome; p != nil {
		if *p != onereply.UnknownRetry && *p != onereply.UnknownStop {
			return r, newProblem(codeInvalidRequest, "on_unknown_outcome must be retry or stop.").with("pointer", "/policy/on_unknown_outcome")
		}
		r.OnUnknown = *p
	}
	if d := m.Policy.Deadline; d != nil {
		if err := checkDeadline(*d, "/policy/deadline"); err != nil {
			return r, err
		}
		r.Deadline = *d
	}
	return r, nil
}

// checkDeadline refuses a time that no clock shows. One that has passed is
// judged where the database's clock is read.
func checkDeadline(at time.Time, pointer string) error {
	if year := at.UTC().Year(); year < 1971 || year > 9999 {
		return newProblem(codeInvalidRequest, "The deadline must lie in the years 1971 to 9999.").with("pointer", pointer)
	}
	return nil
}

// regenerateMessage answers POST /v1/messages/{id}/regenerate.
func (h *handler) regenerateMessage(w http.ResponseWriter, r *http.Request, scope string) error {
	raw, err := readJSON(w, r, smallBody)
	if err != nil {
		return err
	}
	key, err := requireKey(r.Header)
	if err != nil {
		return err
	}
	sent, err := decodeBound(raw, &struct{}{})
	if err != nil {
		return err
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	ctx, cancel := detached(r)
	defer cancel()
	done, err := h.Chat.Regenerate(ctx, chat.RegenerateRequest{Scope: scope, Key: key, Message: id, Bound: sent})
	if err != nil {
		return err
	}
	return h.answerSubmitted(w, r, done.Task, done.Created, func(t taskJSON) any {
		return struct {
			Task taskJSON `json:"task"`
		}{t}
	})
}

// answerSubmitted tells what became of a keyed request that makes a task: 202
// for the one that made it, 200 with the task's present state for every other.
func (h *handler) answerSubmitted(w http.ResponseWriter, r *http.Request, task onereply.Task, created bool, shape func(taskJSON) any) error {
	w.Header().Set("Location", taskPath(task.ID))
	if created {
		return writeJSON(w, http.StatusAccepted, "application/json", shape(wholeTask(task, nil)))
	}
	w.Header().Set(ReplayedHeader, "true")
	// The submission's own answer leaves out the attempts. When they cannot be
	// read now, the replay is answered with what is at hand: it is true.
	if whole, err := h.Engine.Task(r.Context(), task.Scope, task.ID); err == nil {
		task = whole
	}
	return writeJSON(w, http.StatusOK, "application/json", shape(wholeTask(task, nil)))
}
