package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/onereply/onereply"
)

// Page asks for a part of a list. The zero Page is the server's first.
type Page struct {
	Limit int    // at most so many; zero: the server's own limit
	After string // the Next of the page before
}

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.After != "" {
		q.Set("after", p.After)
	}
	return q
}

// List is one page of a list.
type List[T any] struct {
	Data []T    `json:"data"`
	Next string `json:"next,omitempty"` // empty: there is no more
}

// NewConversation makes a conversation. An empty title is allowed; the server
// shows the beginning of the first question then.
func (c *Client) NewConversation(ctx context.Context, title string) (conv Conversation, err error) {
	body := map[string]string{}
	if title != "" {
		body["title"] = title
	}
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/v1/conversations", key: c.NewKey(), body: body}, &conv)
	return conv, err
}

// Conversations lists conversations.
func (c *Client) Conversations(ctx context.Context, p Page) (l List[Conversation], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/conversations", query: p.query()}, &l)
	return l, err
}

// Conversation returns one with its messages.
func (c *Client) Conversation(ctx context.Context, id string) (conv Conversation, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/conversations/" + url.PathEscape(id)}, &conv)
	return conv, err
}

// DeleteConversation deletes one and cancels its running tasks. Deleting what
// is gone is a [*Problem] with status 404, also when the first answer was lost.
func (c *Client) DeleteConversation(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/v1/conversations/" + url.PathEscape(id)}, nil)
	return err
}

// Policy overrides the service's settings for one reply. Zero members keep them.
type Policy struct {
	OnUnknownOutcome onereply.UnknownPolicy `json:"on_unknown_outcome,omitempty"`
	Deadline         *time.Time             `json:"deadline,omitempty"`
}

// Sent says what became of a submission.
type Sent struct {
	Message  Message // of Send; the user's message as saved
	Task     Task    // with its present state
	Replayed bool    // an earlier submission with this key had created the task
}

// Send submits a message to a conversation under a key, and returns once the
// message and its reply task are saved. Sent again with the same key and the
// same inputs it returns the same task; with others it is a [*Problem] with
// code idempotency_key_reused. A nil policy keeps the service's settings.
func (c *Client) Send(ctx context.Context, conversation, key, text string, policy *Policy) (Sent, error) {
	body := struct {
		Text   string  `json:"text"`
		Policy *Policy `json:"policy,omitempty"`
	}{text, policy}
	return c.submit(ctx, "/v1/conversations/"+url.PathEscape(conversation)+"/messages", key, body)
}

// Regenerate submits another answer to a user message: a new task under a key
// of its own. Earlier answers stay.
func (c *Client) Regenerate(ctx context.Context, message, key string) (Sent, error) {
	return c.submit(ctx, "/v1/messages/"+url.PathEscape(message)+"/regenerate", key, struct{}{})
}

func (c *Client) submit(ctx context.Context, path, key string, body any) (Sent, error) {
	var answer struct {
		Message Message `json:"message"`
		Task    Task    `json:"task"`
	}
	r, err := c.do(ctx, request{method: http.MethodPost, path: path, key: key, body: body}, &answer)
	if err != nil {
		return Sent{}, err
	}
	return Sent{Message: answer.Message, Task: answer.Task, Replayed: r.replayed()}, nil
}
