package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onereply/onereply"
)

// maxDocuments bounds how many versions a message may name.
const maxDocuments = 100

// SendRequest is one press of Send.
type SendRequest struct {
	Scope        string
	Key          string
	Conversation string
	Text         string
	Documents    []DocumentVersion
	OnUnknown    onereply.UnknownPolicy // empty: the kind's
	Deadline     time.Time              // zero: none
	// Bound is the canonical form of the body the client sent, which the key is
	// bound to. Empty: the members above.
	Bound []byte
}

// Sent is what became of a press of Send.
type Sent struct {
	Message Message
	Task    onereply.Task // as it stands
	Created bool          // false: the key had sent this message before
}

// Send saves a message and creates the task of its reply in one transaction
// (P2), or finds both by the key (P1). Errors: onereply.ErrInvalid for values
// that no conversation takes, ErrTooLarge among them, with a [MemberError] that
// says which, and for a new message whose deadline has passed; onereply.ErrNotFound when
// the conversation is not there, for a known key too; ErrKeyReused;
// ErrUnavailable. After an error nothing was written, except that after
// ErrUnavailable the same key tells (P11).
func (s *Service) Send(ctx context.Context, r SendRequest) (Sent, error) {
	if err := s.checkSend(r); err != nil {
		return Sent{}, err
	}
	if _, err := s.store.Conversation(ctx, r.Scope, r.Conversation); err != nil {
		return Sent{}, err
	}
	bound, err := bind(ActionMessage, map[string]any{"conversation": r.Conversation}, r.Bound, map[string]any{
		"text": r.Text, "documents": r.Documents, "on_unknown": r.OnUnknown, "deadline": r.Deadline,
	})
	if err != nil {
		return Sent{}, err
	}
	in := Input{
		Conversation: r.Conversation, Message: s.ids.New(), Text: r.Text, Documents: r.Documents,
	}
	res, err := s.submit(ctx, r.Scope, r.Key, ActionMessage, in, func(sub *onereply.Submission) {
		sub.Fingerprint, sub.OnUnknown, sub.Deadline = bound, r.OnUnknown, r.Deadline
	})
	if err != nil {
		return Sent{}, fmt.Errorf("sending to conversation %s: %w", r.Conversation, err)
	}
	if !res.Created {
		if err := json.Unmarshal(res.Task.Input, &in); err != nil {
			return Sent{}, fmt.Errorf("reading the input of task %s: %w", res.Task.ID, err)
		}
		// A regenerate may have given the message a newer task since, so it is read.
		m, err := s.store.Message(ctx, r.Scope, in.Message)
		return Sent{Message: m, Task: res.Task}, err
	}
	return Sent{Message: in.message(res.Task), Task: res.Task, Created: true}, nil
}

// RegenerateRequest is one press of Regenerate.
type RegenerateRequest struct {
	Scope   string
	Key     string
	Message string // the user's message to answer again
	// Bound is the canonical form of the body the client sent, which the key is
	// bound to. Empty: the message alone.
	Bound []byte
}

// Regenerated is what became of a press of Regenerate.
type Regenerated struct {
	Task    onereply.Task // as it stands
	Created bool          // false: the key had asked for this answer before
}

// Regenerate creates another task for the same question (P12), or finds the one
// the key made. Earlier answers stay whatever becomes of it. Errors as of Send;
// onereply.ErrInvalid when the message is an answer.
func (s *Service) Regenerate(ctx context.Context, r RegenerateRequest) (Regenerated, error) {
	m, err := s.store.Message(ctx, r.Scope, r.Message)
	if err != nil {
		return Regenerated{}, err
	}
	if m.Role != User {
		return Regenerated{}, fmt.Errorf("%w: only a user's message can be answered again; this one answers message %s", onereply.ErrInvalid, m.ReplyTo)
	}
	bound, err := bind(ActionRegenerate, map[string]any{"message": r.Message}, r.Bound, map[string]any{})
	if err != nil {
		return Regenerated{}, err
	}
	in := Input{
		Conversation: m.ConversationID, Message: m.ID, Text: m.Text, Documents: m.Documents, Regenerate: true,
	}
	res, err := s.submit(ctx, r.Scope, r.Key, ActionRegenerate, in, func(sub *onereply.Submission) {
		sub.Fingerprint = bound
	})
	if err != nil {
		return Regenerated{}, fmt.Errorf("answering message %s again: %w", r.Message, err)
	}
	return Regenerated{Task: res.Task, Created: res.Created}, nil
}

func (s *Service) submit(ctx context.Context, scope, key, action string, in Input, fill func(*onereply.Submission)) (onereply.Submitted, error) {
	sub, err := s.replies.Submission(scope, key, in)
	if err != nil {
		return onereply.Submitted{}, err
	}
	sub.Action = action
	fill(&sub)
	return s.tasks.Submit(ctx, sub)
}

func (s *Service) checkSend(r SendRequest) error {
	switch {
	case len(r.Text) > s.max:
		return &MemberError{Pointer: "/text", Err: fmt.Errorf("%w: text must have at most %d bytes", ErrTooLarge, s.max)}
	case !utf8.ValidString(r.Text):
		return invalid("/text", "text must be valid UTF-8")
	case strings.ContainsRune(r.Text, 0):
		return invalid("/text", "text must not contain a NUL character")
	case strings.TrimSpace(r.Text) == "":
		return invalid("/text", "text must not be empty")
	case r.OnUnknown != "" && r.OnUnknown != onereply.UnknownRetry && r.OnUnknown != onereply.UnknownStop:
		return invalid("/policy/on_unknown_outcome", "on_unknown_outcome must be retry or stop")
	case len(r.Documents) > maxDocuments:
		return invalid("/documents", "documents must be at most %d", maxDocuments)
	}
	for i, d := range r.Documents {
		if d.ID == "" || len(d.ID) > 255 || strings.ContainsRune(d.ID, 0) || d.Version < 1 {
			return invalid(fmt.Sprintf("/documents/%d", i), "a document needs an id and a version from 1")
		}
	}
	return nil
}

// bind makes the fingerprint a key is bound to: what the path names and what the
// client sent. Where no bytes of the client's are given, own stands for them.
func bind(action string, path map[string]any, sent []byte, own map[string]any) ([]byte, error) {
	path["body"] = json.RawMessage(sent)
	if len(sent) == 0 {
		path["body"] = own
	}
	bound, err := json.Marshal(path) // sorts the members
	if err != nil {
		return nil, fmt.Errorf("%w: what the key is bound to: %w", onereply.ErrInvalid, err)
	}
	return onereply.Fingerprint(action, bound), nil
}
