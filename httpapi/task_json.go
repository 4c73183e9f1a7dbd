package httpapi

import (
	"encoding/json"
	"time"

	"github.com/onereply/onereply"
)

// taskJSON is a task on the wire.
type taskJSON struct {
	ID                onereply.TaskID   `json:"id"`
	Kind              string            `json:"kind"`
	Status            onereply.Status   `json:"status"`
	Reason            onereply.Reason   `json:"reason,omitempty"`
	Error             *onereply.Failure `json:"error,omitempty"`
	AssignmentVersion int64             `json:"assignment_version"`
	Worker            string            `json:"worker,omitempty"`
	LeaseUntil        time.Time         `json:"lease_until,omitzero"` // while running
	RunAt             time.Time         `json:"run_at,omitzero"`      // while queued
	Deadline          time.Time         `json:"deadline,omitzero"`
	CreatedAt         time.Time         `json:"created_at"`
	EndedAt           time.Time         `json:"ended_at,omitzero"`
	Budget            budgetJSON        `json:"budget"`
	Response          json.RawMessage   `json:"response,omitempty"`
	Attempts          []attemptJSON     `json:"attempts,omitzero"` // absent in lists
}

type budgetJSON struct {
	Attempts   boundJSON `json:"attempts"`
	Calls      boundJSON `json:"calls"`
	ElapsedMax string    `json:"elapsed_max"` // a duration such as 15m0s, as ?wait= takes it
}

type boundJSON struct {
	Used int `json:"used"`
	Max  int `json:"max"`
}

type attemptJSON struct {
	ID          onereply.AttemptID      `json:"id"`
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

// listedTask shows a task without its response and attempts.
func listedTask(t onereply.Task) taskJSON {
	j := taskJSON{
		ID: t.ID, Kind: t.Kind, Status: t.Status, Reason: t.Reason, Error: t.Error,
		AssignmentVersion: t.Version, Worker: t.Worker,
		Deadline: utc(t.Budget.Deadline), CreatedAt: utc(t.CreatedAt), EndedAt: utc(t.EndedAt),
		Budget: budgetJSON{
			Attempts:   boundJSON(t.Budget.Attempts),
			Calls:      boundJSON(t.Budget.Calls),
			ElapsedMax: t.Budget.ElapsedMax.String(),
		},
	}
	switch t.Status {
	case onereply.StatusQueued:
		j.RunAt = utc(t.RunAt)
	case onereply.StatusRunning:
		j.LeaseUntil = utc(t.LeaseUntil)
	}
	return j
}

// wholeTask shows all of a task. With render, a reply's response gets an html
// member beside its text.
func wholeTask(t onereply.Task, render func(string) string) taskJSON {
	j := listedTask(t)
	j.Response = t.Response
	if render != nil && len(t.Response) > 0 {
		j.Response = withHTML(t.Response, render)
	}
	j.Attempts = make([]attemptJSON, len(t.Attempts))
	for i, a := range t.Attempts {
		j.Attempts[i] = attemptJSON{
			ID: a.ID, Version: a.Version, Worker: a.Worker, StartedAt: utc(a.StartedAt), EndedAt: utc(a.EndedAt),
			Outcome: a.Outcome, Error: a.Error, Calls: a.Calls, OperationID: a.Operation, Usage: a.Usage,
		}
	}
	return j
}

// withHTML adds the rendered text to a response that has one; a response of
// another shape stays as it is.
func withHTML(response json.RawMessage, render func(string) string) json.RawMessage {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(response, &members) != nil || members["text"] == nil || json.Unmarshal(members["text"], &text) != nil {
		return response
	}
	html, err := json.Marshal(render(text))
	if err != nil {
		return response
	}
	members["html"] = html
	shown, err := json.Marshal(members)
	if err != nil {
		return response
	}
	return shown
}

// eventJSON is an entry of a timeline on the wire.
type eventJSON struct {
	Type      onereply.EventType `json:"type"`
	At        time.Time          `json:"at"`
	LastAt    time.Time          `json:"last_at,omitzero"`
	Count     int                `json:"count"`
	Version   int64              `json:"version,omitempty"`
	AttemptID onereply.AttemptID `json:"attempt_id,omitempty"`
	Worker    string             `json:"worker,omitempty"`
	Call      int                `json:"call,omitempty"`
	Why       onereply.Why       `json:"why,omitempty"`
	Code      string             `json:"code,omitempty"`
	Detail    string             `json:"detail,omitempty"`
	Usage     onereply.Usage     `json:"usage,omitzero"`
}

func showEvent(e onereply.Event) eventJSON {
	return eventJSON{
		Type: e.Type, At: utc(e.At), LastAt: utc(e.Last), Count: max(1, e.Count), Version: e.Version, AttemptID: e.Attempt,
		Worker: e.Worker, Call: e.Call, Why: e.Why, Code: e.Code, Detail: e.Detail, Usage: e.Usage,
	}
}

// utc makes times print alike wherever the server stands; a zero time stays one.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
