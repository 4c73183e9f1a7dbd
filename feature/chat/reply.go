package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// Input is what a reply task works from. It is stored with the task and holds
// all that a worker or a replay needs to know of the press that made it.
type Input struct {
	Conversation string            `json:"conversation"`
	Message      string            `json:"message"` // the question's id, minted before its row exists
	Text         string            `json:"text"`
	Documents    []DocumentVersion `json:"documents,omitempty"`
	Regenerate   bool              `json:"regenerate,omitempty"` // the message exists; only the task is new
}

// message is the row that a Send makes.
func (in Input) message(t onereply.Task) Message {
	return Message{
		ID: in.Message, ConversationID: in.Conversation, Role: User, Text: in.Text,
		CreatedAt: milliseconds(t.CreatedAt), Documents: in.Documents, TaskID: t.ID,
	}
}

// Response is what fills a reply task's slot.
type Response struct {
	MessageID    string         `json:"message_id"` // of the assistant's message
	Text         string         `json:"text"`
	Model        string         `json:"model"`
	FinishReason string         `json:"finish_reason"`
	Truncated    bool           `json:"truncated"`
	Citations    []Citation     `json:"citations"`
	Usage        onereply.Usage `json:"usage"`
}

// Citation names a passage that the answer refers to.
type Citation struct {
	DocumentID string `json:"document_id"`
	Version    int    `json:"version"`
	Ordinal    int    `json:"ordinal"`
}

// cancelGrace bounds the request that asks a provider to stop.
const cancelGrace = 5 * time.Second

// work is one attempt at a reply. It first looks up the call that a lost worker
// left open, where the provider has a way to, and makes a call of its own only
// when that one is known to have produced nothing, or cannot be looked up and
// the policy allows another (P10).
func (s *Service) work(ctx context.Context, a onereply.Attempt, in Input) (Response, error) {
	if open := a.Assignment().OpenCall; open != nil && open.Operation != "" {
		if r, ok := s.model.(provider.Recoverer); ok {
			return s.recover(ctx, a, r, open.Operation, in)
		}
	}
	request, passages, err := s.request(ctx, a.Assignment().Task.Scope, in)
	if err != nil {
		return Response{}, err
	}
	leave, err := s.admit(ctx, request)
	if err != nil {
		return Response{}, err
	}
	defer leave()
	var out Response
	err = a.Call(ctx, func(ctx context.Context, c onereply.Call) error {
		noted := &notedCall{Call: c}
		answer, err := s.model.Start(ctx, noted, request, emitter(ctx, a))
		if err != nil {
			return errors.Join(err, s.stop(ctx, noted.operation))
		}
		c.Used(answer.Usage)
		out, err = s.candidate(answer, passages)
		return err
	})
	return out, err
}

// admit waits for the model's leave to make a call, before it is counted: what
// is kept back costs nothing of the budget of calls.
func (s *Service) admit(ctx context.Context, r provider.Request) (leave func(), err error) {
	if m, ok := s.model.(provider.Admitter); ok {
		return m.Admit(ctx, r)
	}
	return func() {}, nil
}

// recover follows an operation to its end. What it learns for certain is
// recorded, so that the next attempt may call again; what it does not learn
// leaves the operation open for the next attempt to look up.
func (s *Service) recover(ctx context.Context, a onereply.Attempt, r provider.Recoverer, operation string, in Input) (Response, error) {
	_, passages, err := s.request(ctx, a.Assignment().Task.Scope, in)
	if err != nil {
		return Response{}, err
	}
	ctx, end := context.WithTimeoutCause(ctx, s.replies.Policy.WithDefaults().CallTimeout, onereply.ErrCallTimeout)
	defer end()
	answer, err := r.Recover(ctx, operation, emitter(ctx, a))
	var out Response
	if err == nil {
		out, err = s.candidate(answer, passages)
	}
	if err == nil {
		return out, a.Resolve(ctx, onereply.Resolution{Class: onereply.ClassAnswered, Usage: answer.Usage})
	}
	// An error that says nothing of the operation is an outcome still unknown.
	ended := onereply.Classify(err, onereply.Observation{}, context.Cause(ctx), time.Time{})
	switch ended.Class {
	case onereply.ClassUnknown, onereply.ClassInterrupted, onereply.ClassNotSent:
		if !ended.Final {
			return Response{}, errors.Join(ended, s.stop(ctx, operation))
		}
	}
	if ended.Usage == (onereply.Usage{}) {
		ended.Usage = answer.Usage // it answered, and what it said is no candidate
	}
	return Response{}, errors.Join(ended, a.Resolve(ctx, onereply.Resolution{Class: ended.Class, Code: ended.Failure().Code, Usage: ended.Usage}))
}

// stop asks the provider to end an operation whose task was cancelled (P16).
// The task has ended, so how that went is only told.
func (s *Service) stop(ctx context.Context, operation string) error {
	r, ok := s.model.(provider.Recoverer)
	if !ok || operation == "" || !errors.Is(context.Cause(ctx), onereply.ErrCancelled) {
		return nil
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
	defer end()
	if err := r.Cancel(ctx, operation); err != nil {
		return fmt.Errorf("asking the provider to stop operation %s: %w", operation, err)
	}
	return nil
}

// notedCall remembers the operation that was checkpointed.
type notedCall struct {
	onereply.Call
	operation string
}

// Checkpoint saves the operation and remembers it.
func (c *notedCall) Checkpoint(ctx context.Context, operation string) error {
	c.operation = operation
	return c.Call.Checkpoint(ctx, operation)
}

// emitter appends the model's text to the draft.
func emitter(ctx context.Context, a onereply.Attempt) func(string) error {
	return func(delta string) error {
		if delta = clean(delta); delta == "" {
			return nil
		}
		return a.Draft(ctx, delta)
	}
}

// candidate turns an answer into a response, or says that it is none. The id of
// the message is minted here, so two attempts never share one.
func (s *Service) candidate(answer provider.Answer, passages []Passage) (Response, error) {
	text := strings.ToValidUTF8(clean(answer.Text), "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return Response{}, onereply.Useless(onereply.CodeEmptyAnswer, nil)
	}
	model := answer.Model
	if model == "" {
		model = s.model.Name()
	}
	return Response{
		MessageID: s.ids.New(), Text: text, Model: model, FinishReason: answer.FinishReason,
		Truncated: answer.Truncated, Citations: cited(text, passages), Usage: answer.Usage,
	}, nil
}

// clean takes out the one character that no database keeps in a text.
func clean(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// created writes the rows of new tasks in the submission's transaction: the
// question, or that its message has a newer task. A conversation that was
// deleted since it was looked at undoes the submission, and so does a deadline
// that has passed by the database's clock: that is a mistake of whoever sends it
// now, while a press of earlier, whose key finds its task, is never judged again.
func (s *Service) created(ctx context.Context, tx onereply.Tx, tasks []onereply.Created[Input]) error {
	var messages []NewMessage
	var regenerations []Regeneration
	for _, t := range tasks {
		if d := t.Task.Budget.Deadline; !d.IsZero() && !d.After(t.Task.CreatedAt) {
			return invalid("/policy/deadline", "the deadline has passed already")
		}
		if t.In.Regenerate {
			regenerations = append(regenerations, Regeneration{
				Scope: t.Task.Scope, Conversation: t.In.Conversation, Message: t.In.Message, Task: t.Task.ID,
			})
			continue
		}
		messages = append(messages, NewMessage{
			Scope: t.Task.Scope, Message: t.In.message(t.Task), Title: titleFrom(t.In.Text),
		})
	}
	if len(messages) > 0 {
		saved, err := s.store.AddMessages(ctx, tx, messages)
		if err != nil {
			return fmt.Errorf("saving %d messages: %w", len(messages), err)
		}
		for i, ok := range saved {
			if !ok {
				return fmt.Errorf("saving message %s: conversation %s: %w", messages[i].ID, messages[i].ConversationID, onereply.ErrNotFound)
			}
		}
	}
	if len(regenerations) > 0 {
		saved, err := s.store.AddRegenerations(ctx, tx, regenerations)
		if err != nil {
			return fmt.Errorf("saving %d regenerations: %w", len(regenerations), err)
		}
		for i, ok := range saved {
			if !ok {
				return fmt.Errorf("answering message %s again: %w", regenerations[i].Message, onereply.ErrNotFound)
			}
		}
	}
	return nil
}

// ended writes the assistant's messages of completed tasks. A task that failed
// or was cancelled leaves none: no empty bubble, and nothing that a later turn
// would send to the model. Where the conversation is gone there is nothing to
// write to, and the response stays with its task.
func (s *Service) ended(ctx context.Context, tx onereply.Tx, tasks []onereply.Ended[Input, Response]) error {
	var messages []NewMessage
	for _, t := range tasks {
		if t.Out == nil {
			continue
		}
		messages = append(messages, NewMessage{Scope: t.Task.Scope, Message: Message{
			ID: t.Out.MessageID, ConversationID: t.In.Conversation, Role: Assistant, Text: t.Out.Text,
			CreatedAt: milliseconds(t.Task.EndedAt), TaskID: t.Task.ID, ReplyTo: t.In.Message,
		}})
	}
	if len(messages) == 0 {
		return nil
	}
	if _, err := s.store.AddMessages(ctx, tx, messages); err != nil {
		return fmt.Errorf("saving %d answers: %w", len(messages), err)
	}
	return nil
}
