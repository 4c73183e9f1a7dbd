package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/onereply/onereply"
)

// Problem is a refusal by the server (RFC 9457).
type Problem struct {
	Status     int
	Code       string // stable: "idempotency_key_reused", "not_found", …; empty when the answer was not the service's
	Title      string
	Detail     string        // for people
	RetryAfter time.Duration // the server's wish; zero: none
	Pointer    string        // the member of the body that was refused, as a JSON pointer; empty: not said
	MaxBytes   int64         // of too_large: the limit; zero: not said
	// TaskStatus is how the task stands that the request was about; empty: not said.
	TaskStatus onereply.Status
}

// Error says what was refused and why.
func (p *Problem) Error() string {
	s := fmt.Sprintf("the server answered %d", p.Status)
	if p.Code != "" {
		s += " " + p.Code
	}
	if text := cmp.Or(p.Detail, p.Title); text != "" {
		s += ": " + strings.TrimSuffix(text, ".") // a sentence there, a part of one here
	}
	if p.TaskStatus != "" {
		s += fmt.Sprintf(" (it is %s)", p.TaskStatus)
	}
	return s
}

const maxProblem = 64 << 10

// readProblem makes a Problem of a response that is not a success, whoever
// wrote it: a proxy's page has a status and nothing else that we trust.
func readProblem(resp *http.Response) error {
	p := &Problem{
		Status:     resp.StatusCode,
		RetryAfter: onereply.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return &broken{fmt.Errorf("reading a refusal: %w", err)}
	}
	var body struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Detail string `json:"detail"`

		Pointer    string          `json:"pointer"`
		MaxBytes   int64           `json:"max_bytes"`
		TaskStatus onereply.Status `json:"task_status"`
	}
	if json.Unmarshal(text, &body) == nil && body.Type != "" {
		p.Code, p.Title, p.Detail = path.Base(body.Type), body.Title, body.Detail
		p.Pointer, p.MaxBytes, p.TaskStatus = body.Pointer, body.MaxBytes, body.TaskStatus
	} else {
		p.Title = http.StatusText(resp.StatusCode)
	}
	return p
}
