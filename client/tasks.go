package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/onereply/onereply"
)

func taskPath(id, rest string) string { return "/v1/tasks/" + url.PathEscape(id) + rest }

// Task returns a task as it stands.
func (c *Client) Task(ctx context.Context, id string) (t Task, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: taskPath(id, "")}, &t)
	return t, err
}

// Wait returns the task once it has ended. It asks the server to hold each
// answer back, so it costs one request every 20 seconds.
func (c *Client) Wait(ctx context.Context, id string) (Task, error) {
	for {
		var t Task
		q := request{method: http.MethodGet, path: taskPath(id, ""), query: url.Values{"wait": {"20s"}}}
		if _, err := c.do(ctx, q, &t); err != nil {
			return Task{}, err
		}
		if t.Status.Ended() {
			return t, nil
		}
	}
}

// Filter selects tasks. Zero members mean any.
type Filter struct {
	Status onereply.Status
	Kind   string
	Page
}

// Tasks lists tasks, newest first.
func (c *Client) Tasks(ctx context.Context, f Filter) (l List[Task], err error) {
	q := f.query()
	if f.Status != "" {
		q.Set("status", string(f.Status))
	}
	if f.Kind != "" {
		q.Set("kind", f.Kind)
	}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/v1/tasks", query: q}, &l)
	return l, err
}

// Event is one entry of a task's timeline.
type Event struct {
	Type    onereply.EventType `json:"type"`
	At      time.Time          `json:"at"`
	Last    time.Time          `json:"last_at,omitzero"` // of a counted entry: the latest
	Count   int                `json:"count"`
	Version int64              `json:"version,omitempty"`
	Attempt string             `json:"attempt_id,omitempty"`
	Worker  string             `json:"worker,omitempty"`
	Call    int                `json:"call,omitempty"`
	Why     onereply.Why       `json:"why,omitempty"`
	Code    string             `json:"code,omitempty"`
	Detail  string             `json:"detail,omitempty"`
	Usage   onereply.Usage     `json:"usage,omitzero"`
}

// Timeline returns every event of a task's life, oldest first.
func (c *Client) Timeline(ctx context.Context, id string) ([]Event, error) {
	var l List[Event]
	_, err := c.do(ctx, request{method: http.MethodGet, path: taskPath(id, "/timeline")}, &l)
	return l.Data, err
}

// Cancel cancels a task and returns it; a cancelled one is returned as it is.
// One that ended otherwise is a [*Problem] with code task_ended.
func (c *Client) Cancel(ctx context.Context, id string) (t Task, err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: taskPath(id, "/cancel")}, &t)
	return t, err
}

// Resume gives a failed task a fresh allowance under a key; repeated with the
// same key it adds nothing. A zero deadline keeps the task's own.
func (c *Client) Resume(ctx context.Context, id, key string, deadline time.Time) (t Task, err error) {
	body := struct {
		Deadline *time.Time `json:"deadline,omitempty"`
	}{}
	if !deadline.IsZero() {
		body.Deadline = &deadline
	}
	_, err = c.do(ctx, request{method: http.MethodPost, path: taskPath(id, "/resume"), key: key, body: body}, &t)
	return t, err
}
