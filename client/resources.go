package client

import (
	"encoding/json"
	"time"

	"github.com/onereply/onereply"
)

// Conversation is a list of messages with a title.
type Conversation struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	CreatedAt time.Time `json:"created_at"`
	Messages  []Message `json:"messages,omitempty"` // oldest first; filled by [Client.Conversation]
}

// Message is one turn of a conversation.
type Message struct {
	ID             string    `json:"id"`
	ConversationID string    `json:"conversation_id"`
	Role           string    `json:"role"` // "user" or "assistant"
	Text           string    `json:"text"`
	CreatedAt      time.Time `json:"created_at"`
	TaskID         string    `json:"task_id,omitempty"`  // of a user message: its newest reply task
	ReplyTo        string    `json:"reply_to,omitempty"` // of an assistant message
	Shown          *bool     `json:"shown,omitempty"`    // of an assistant message: false for older siblings
}

// Task is a task as the API shows it.
type Task struct {
	ID                string            `json:"id"`
	Kind              string            `json:"kind"`
	Status            onereply.Status   `json:"status"`
	Reason            onereply.Reason   `json:"reason,omitempty"`
	Error             *onereply.Failure `json:"error,omitempty"`
	AssignmentVersion int64             `json:"assignment_version"`
	Worker            string            `json:"worker,omitempty"`
	LeaseUntil        time.Time         `json:"lease_until,omitzero"`
	RunAt             time.Time         `json:"run_at,omitzero"`
	Deadline          time.Time         `json:"deadline,omitzero"`
	CreatedAt         time.Time         `json:"created_at"`
	EndedAt           time.Time         `json:"ended_at,omitzero"`
	Budget            Budget            `json:"budget"`
	Response          json.RawMessage   `json:"response,omitempty"`
	Attempts          []Attempt         `json:"attempts,omitempty"` // absent in lists
}

// Reply decodes the response of a completed reply task; the zero Reply where
// there is none.
func (t Task) Reply() (r Reply, err error) {
	if len(t.Response) == 0 {
		return r, nil
	}
	err = json.Unmarshal(t.Response, &r)
	return r, err
}

// Reply is the accepted answer of a reply task.
type Reply struct {
	MessageID    string         `json:"message_id"`
	Text         string         `json:"text"`
	Model        string         `json:"model"`
	FinishReason string         `json:"finish_reason"`
	Truncated    bool           `json:"truncated"`
	Usage        onereply.Usage `json:"usage"`
}

// Budget is how much of each bound is used.
type Budget struct {
	Attempts   Bound  `json:"attempts"`
	Calls      Bound  `json:"calls"`
	ElapsedMax string `json:"elapsed_max"` // a duration such as "15m0s"
}

// Bound is one limit.
type Bound struct {
	Used int `json:"used"`
	Max  int `json:"max"`
}

// Attempt is one execution under one assignment.
type Attempt struct {
	ID          string                  `json:"id"`
	Version     int64                   `json:"version"`
	Worker      string                  `json:"worker"`
	StartedAt   time.Time               `json:"started_at"`
	EndedAt     time.Time               `json:"ended_at,omitzero"`
	Outcome     onereply.AttemptOutcome `json:"outcome,omitempty"`
	Error       *onereply.Failure       `json:"error,omitempty"`
	Calls       int                     `json:"calls"`
	OperationID string                  `json:"operation_id,omitempty"`
	Usage       onereply.Usage          `json:"usage,omitzero"`
}
