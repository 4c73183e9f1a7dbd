package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
)

// Chat keeps conversations and messages. It implements chat.Store.
type Chat struct {
	db  Database
	sql statements
}

var _ chat.Store = (*Chat)(nil)

// NewChat returns the chat's tables in a database whose schema is migrated.
func NewChat(db Database) (*Chat, error) {
	sql, err := load(db, "chat", "conversations", "messages", "regenerations")
	if err != nil {
		return nil, err
	}
	return &Chat{db: db, sql: sql}, nil
}

// Conversation returns one; onereply.ErrNotFound.
func (c *Chat) Conversation(ctx context.Context, scope, id string) (chat.Conversation, error) {
	found, err := c.conversations(ctx, "conversation", scope, id)
	if err != nil {
		return chat.Conversation{}, err
	}
	if len(found) == 0 {
		return chat.Conversation{}, fmt.Errorf("conversation %s: %w", id, onereply.ErrNotFound)
	}
	return found[0], nil
}

// Conversations returns a page, newest first.
func (c *Chat) Conversations(ctx context.Context, scope string, limit int, after string) ([]chat.Conversation, error) {
	return c.conversations(ctx, "conversations", scope, after, int64(limit))
}

func (c *Chat) conversations(ctx context.Context, name string, args ...any) (found []chat.Conversation, err error) {
	err = c.sql.query(ctx, c.db.Read, func(r Rows) error {
		var one chat.Conversation
		var created int64
		if err := r.Scan(&one.ID, &one.Title, &created); err != nil {
			return err
		}
		one.CreatedAt = fromMilliseconds(created)
		found = append(found, one)
		return nil
	}, name, args...)
	return found, err
}

// Messages returns those of a conversation, oldest first.
func (c *Chat) Messages(ctx context.Context, scope, conversation string) ([]chat.Message, error) {
	return c.messages(ctx, "messages", scope, conversation)
}

// Message returns one; onereply.ErrNotFound.
func (c *Chat) Message(ctx context.Context, scope, id string) (chat.Message, error) {
	found, err := c.messages(ctx, "message", scope, id)
	if err != nil {
		return chat.Message{}, err
	}
	if len(found) == 0 {
		return chat.Message{}, fmt.Errorf("message %s: %w", id, onereply.ErrNotFound)
	}
	return found[0], nil
}

func (c *Chat) messages(ctx context.Context, name, scope, id string) (found []chat.Message, err error) {
	err = c.sql.query(ctx, c.db.Read, func(r Rows) error {
		var (
			m                           chat.Message
			created, shown              int64
			role, documents, task, text string
		)
		if err := r.Scan(&m.ID, &m.ConversationID, &role, &text, &created, &documents, &task, &m.ReplyTo, &shown); err != nil {
			return err
		}
		m.Role, m.Text, m.CreatedAt, m.TaskID = chat.Role(role), text, fromMilliseconds(created), onereply.TaskID(task)
		if m.Role == chat.Assistant {
			isShown := shown == 1
			m.Shown = &isShown
		}
		if documents != "" {
			if err := json.Unmarshal([]byte(documents), &m.Documents); err != nil {
				return fmt.Errorf("documents of message %s: %w", m.ID, err)
			}
		}
		found = append(found, m)
		return nil
	}, name, scope, id)
	return found, err
}

// History returns the answered questions before a message, oldest first.
func (c *Chat) History(ctx context.Context, scope, message string) (turns []chat.Turn, err error) {
	err = c.sql.query(ctx, c.db.Read, func(r Rows) error {
		var t chat.Turn
		if err := r.Scan(&t.Question, &t.Answer); err != nil {
			return err
		}
		turns = append(turns, t)
		return nil
	}, "history", scope, message)
	return turns, err
}

// Now is the transaction's time.
func (c *Chat) Now(ctx context.Context, tx onereply.Tx) (time.Time, error) { return c.db.Now(ctx, tx) }

// AddConversation saves a new conversation.
func (c *Chat) AddConversation(ctx context.Context, tx onereply.Tx, scope string, n chat.Conversation) error {
	_, err := c.sql.exec(ctx, c.db.Unwrap(tx), "conversation_add", n.ID, scope, n.Title, n.CreatedAt.UnixMilli())
	return err
}

// AddMessages saves messages at the end of their conversations.
func (c *Chat) AddMessages(ctx context.Context, tx onereply.Tx, messages []chat.NewMessage) ([]bool, error) {
	q := c.db.Unwrap(tx)
	saved := make([]bool, len(messages))
	for i, m := range messages {
		position, found, err := c.place(ctx, q, m.Scope, m.ConversationID, m.Title)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		documents, err := encodeDocuments(m.Documents)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", m.ID, err)
		}
		if _, err := c.sql.exec(ctx, q, "message_add", m.ID, m.ConversationID, position, string(m.Role), m.Text,
			m.CreatedAt.UnixMilli(), documents, string(m.TaskID), m.ReplyTo); err != nil {
			return nil, fmt.Errorf("message %s: %w", m.ID, err)
		}
		saved[i] = true
	}
	return saved, nil
}

// AddRegenerations makes each task the newest of its message.
func (c *Chat) AddRegenerations(ctx context.Context, tx onereply.Tx, regenerations []chat.Regeneration) ([]bool, error) {
	q := c.db.Unwrap(tx)
	saved := make([]bool, len(regenerations))
	for i, r := range regenerations {
		position, found, err := c.place(ctx, q, r.Scope, r.Conversation, "")
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		n, err := c.sql.exec(ctx, q, "regeneration_add", string(r.Task), r.Message, position)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", r.Message, err)
		}
		saved[i] = n == 1
	}
	return saved, nil
}

// place locks the conversation and takes its next place.
func (c *Chat) place(ctx context.Context, q Querier, scope, conversation, title string) (position int64, found bool, err error) {
	err = c.sql.query(ctx, q, func(r Rows) error {
		found = true
		return r.Scan(&position)
	}, "conversation_place", scope, conversation, title)
	if err != nil {
		return 0, false, fmt.Errorf("conversation %s: %w", conversation, err)
	}
	return position, found, nil
}

// Unanswered returns the conversation's tasks that produced no message.
func (c *Chat) Unanswered(ctx context.Context, tx onereply.Tx, scope, conversation string) (ids []onereply.TaskID, err error) {
	err = c.sql.query(ctx, c.db.Unwrap(tx), func(r Rows) error {
		var id string
		if err := r.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, onereply.TaskID(id))
		return nil
	}, "unanswered", scope, conversation)
	return ids, err
}

// DeleteConversation deletes a conversation none of whose unanswered tasks is
// missing in ended, or says which are.
func (c *Chat) DeleteConversation(ctx context.Context, tx onereply.Tx, scope, id string, ended []onereply.TaskID) ([]onereply.TaskID, error) {
	q := c.db.Unwrap(tx)
	found := false
	err := c.sql.query(ctx, q, func(r Rows) error {
		found = true
		return r.Scan(new(string))
	}, "conversation_lock", scope, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("conversation %s: %w", id, onereply.ErrNotFound)
	}
	more, err := c.Unanswered(ctx, tx, scope, id)
	if err != nil {
		return nil, err
	}
	more = slices.DeleteFunc(more, func(t onereply.TaskID) bool { return slices.Contains(ended, t) })
	if len(more) > 0 {
		return more, nil
	}
	_, err = c.sql.exec(ctx, q, "conversation_delete", scope, id)
	return nil, err
}

func encodeDocuments(documents []chat.DocumentVersion) (string, error) {
	if len(documents) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(documents)
	if err != nil {
		return "", fmt.Errorf("encoding documents: %w", err)
	}
	return string(raw), nil
}

func fromMilliseconds(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
