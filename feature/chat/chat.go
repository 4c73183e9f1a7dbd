package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// Kind is the name of the kind of task this feature works on.
const Kind = "reply"

// The actions a key is unique for, beside its scope. They are stored with the
// keys; never change them.
const (
	ActionConversation = "conversation"
	ActionMessage      = "message"
	ActionRegenerate   = "regenerate"
)

// ErrTooLarge: a text is longer than the service takes. It also matches
// onereply.ErrInvalid.
var ErrTooLarge = fmt.Errorf("%w: too large", onereply.ErrInvalid)

// MemberError is an error, most often ErrInvalid, about one member of what was
// sent.
type MemberError struct {
	Pointer string // where it stands in the body, as a JSON pointer such as "/text"
	Err     error
}

// Error gives the error's text.
func (e *MemberError) Error() string { return e.Err.Error() }

// Unwrap gives the error.
func (e *MemberError) Unwrap() error { return e.Err }

// invalid refuses a member.
func invalid(pointer, format string, args ...any) error {
	return &MemberError{Pointer: pointer, Err: fmt.Errorf("%w: %s", onereply.ErrInvalid, fmt.Sprintf(format, args...))}
}

// Role says who wrote a message.
type Role string

// The two roles of a stored message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// DocumentVersion names one version of a document. A request names versions,
// never "the latest", so that a replay means the same.
type DocumentVersion struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
}

// Conversation is a thread of messages in one scope.
type Conversation struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	CreatedAt time.Time `json:"created_at"` // UTC, in whole milliseconds, of the database
}

// Thread is a conversation with its messages, oldest first.
type Thread struct {
	Conversation
	Messages []Message `json:"messages"`
}

// Message is one turn of a conversation, by a person or by the model.
type Message struct {
	ID             string            `json:"id"`
	ConversationID string            `json:"conversation_id"`
	Role           Role              `json:"role"`
	Text           string            `json:"text"`
	CreatedAt      time.Time         `json:"created_at"` // UTC, in whole milliseconds, of the database
	Documents      []DocumentVersion `json:"documents,omitempty"`

	// TaskID is the newest task of a user's message, and the task that produced
	// an assistant's.
	TaskID onereply.TaskID `json:"task_id,omitempty"`
	// ReplyTo is the user's message that an assistant's message answers.
	ReplyTo string `json:"reply_to,omitempty"`
	// Shown is set on an assistant's message: true for the newest accepted answer
	// to its question, false for its older siblings.
	Shown *bool `json:"shown,omitempty"`
}

// Config configures a service. Zero members take the defaults named.
type Config struct {
	Store  Store
	Model  provider.Model
	IDs    *onereply.IDs   // default onereply.NewIDs()
	Policy onereply.Policy // of reply tasks

	// System, when not empty, is told to the model before every conversation.
	System string
	// MaxMessage is how many bytes a message's text may have; default 64 KiB.
	MaxMessage int
	// Retriever finds passages of the documents a message names. Nil: the names
	// are stored and bound to the key, and the model is told nothing of them.
	Retriever Retriever
}

// Retriever finds what documents say about a question.
type Retriever interface {
	// Retrieve returns the passages to put before the model, best first. Only
	// the named versions are searched. An error ends the attempt before any call;
	// unless it is a CallError, it is retried with backoff.
	Retrieve(ctx context.Context, scope, question string, documents []DocumentVersion) ([]Passage, error)
}

// Passage is a piece of a document's version.
type Passage struct {
	DocumentID string
	Version    int
	Ordinal    int
	Text       string
}

// Service is the chat of all scopes. Its methods are safe for concurrent use
// once Bind has been called.
type Service struct {
	store     Store
	model     provider.Model
	ids       *onereply.IDs
	retriever Retriever
	system    string
	max       int
	replies   *onereply.Definition[Input, Response]
	tasks     onereply.Submitter
}

// New checks the configuration and returns a service. Give its Kind to the
// engine, then the engine to Bind.
func New(c Config) (*Service, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("chat needs a store")
	case c.Model == nil:
		return nil, errors.New("chat needs a model")
	case c.MaxMessage < 0:
		return nil, fmt.Errorf("%w: max message must not be negative", onereply.ErrInvalid)
	}
	if err := c.Policy.WithDefaults().Validate(); err != nil {
		return nil, fmt.Errorf("policy of replies: %w", err)
	}
	s := &Service{
		store: c.Store, model: c.Model, ids: c.IDs, retriever: c.Retriever,
		system: c.System, max: c.MaxMessage,
	}
	if s.ids == nil {
		s.ids = onereply.NewIDs()
	}
	if s.max == 0 {
		s.max = 64 << 10
	}
	s.replies = &onereply.Definition[Input, Response]{
		Name: Kind, Policy: c.Policy, Work: s.work, Created: s.created, Ended: s.ended,
	}
	return s, nil
}

// Kind returns the kind of task that replies are, for the engine to run.
func (s *Service) Kind() onereply.Kind { return s.replies.Kind() }

// Bind gives the service the engine its tasks go to. Call it once, before the
// engine runs and before any other method but Kind.
func (s *Service) Bind(tasks onereply.Submitter) { s.tasks = tasks }
