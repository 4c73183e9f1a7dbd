package chat

import (
	"context"
	"time"

	"github.com/onereply/onereply"
)

// Store is where conversations and messages are kept. Everything is in a scope,
// and what belongs to another scope is not there. Its methods are safe for
// concurrent use; one that takes a transaction belongs to that transaction.
type Store interface {
	Reader
	Writer
}

// Reader reads what has been committed.
type Reader interface {
	// Conversation returns one; onereply.ErrNotFound.
	Conversation(ctx context.Context, scope, id string) (Conversation, error)
	// Conversations returns at most limit of them, newest first, those older
	// than the id after (empty: from the newest).
	Conversations(ctx context.Context, scope string, limit int, after string) ([]Conversation, error)
	// Messages returns those of a conversation, oldest first.
	Messages(ctx context.Context, scope, conversation string) ([]Message, error)
	// Message returns one; onereply.ErrNotFound.
	Message(ctx context.Context, scope, id string) (Message, error)
	// History returns, oldest first, the questions before a message that have an
	// answer, each with the answer that is shown.
	History(ctx context.Context, scope, message string) ([]Turn, error)
}

// Writer writes in a transaction of the engine's store. It takes its row locks
// after those of tasks and, among conversations, in the order it is called.
type Writer interface {
	// Now is the transaction's time by the clock that also dates tasks.
	Now(ctx context.Context, tx onereply.Tx) (time.Time, error)
	// AddConversation saves a new conversation.
	AddConversation(ctx context.Context, tx onereply.Tx, scope string, c Conversation) error
	// AddMessages saves messages at the end of their conversations, in this
	// order, and says of each whether it was: one whose conversation is not there
	// in that scope is left out.
	AddMessages(ctx context.Context, tx onereply.Tx, messages []NewMessage) (saved []bool, err error)
	// AddRegenerations makes each task the newest of its message, and says of
	// each whether it was: one whose message is not there is left out.
	AddRegenerations(ctx context.Context, tx onereply.Tx, regenerations []Regeneration) (saved []bool, err error)
	// Unanswered returns every task of a conversation that produced no message:
	// those that have not ended, failed ones (which may be resumed), and cancelled
	// ones. It locks nothing.
	Unanswered(ctx context.Context, tx onereply.Tx, scope, conversation string) ([]onereply.TaskID, error)
	// DeleteConversation locks the conversation, then deletes it with its
	// messages if all its unanswered tasks are among those given. It says which
	// are not: when there is any, nothing was deleted. onereply.ErrNotFound.
	DeleteConversation(ctx context.Context, tx onereply.Tx, scope, id string, ended []onereply.TaskID) (more []onereply.TaskID, err error)
}

// Turn is a question and the answer that is shown for it.
type Turn struct {
	Question string
	Answer   string
}

// NewMessage is a message to save. Shown is not looked at.
type NewMessage struct {
	Scope string
	Message
	// Title becomes the conversation's title if it has none.
	Title string
}

// Regeneration is another task for a user's message.
type Regeneration struct {
	Scope        string
	Conversation string
	Message      string
	Task         onereply.TaskID
}
