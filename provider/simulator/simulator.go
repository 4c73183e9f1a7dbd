package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBody is how long a request may be.
const maxBody = 64 << 20

// Options configure a simulator. The zero value is ready.
type Options struct {
	// Script plans the answer to a request; false leaves it to the markers.
	Script func(Request) (Plan, bool)
	// Keep is how many records are kept, the oldest going first; default 10,000.
	// Counts per key are kept for as many keys.
	Keep int
}

// Message is one turn as it arrived.
type Message struct {
	Role string
	Text string
}

// Request is what a script decides by.
type Request struct {
	Number   int // of all requests, from 1
	Key      string
	Attempt  int // of all requests with this key, from 1
	Path     string
	Model    string
	Messages []Message
	Prompt   string // the last user message, with its markers
}

// Simulator is the scripted provider. It is safe for concurrent use.
type Simulator struct {
	options Options
	closed  chan struct{}
	close   sync.Once
	log     log
}

// New returns a simulator.
func New(o Options) *Simulator {
	if o.Keep <= 0 {
		o.Keep = 10_000
	}
	return &Simulator{options: o, closed: make(chan struct{}), log: newLog(o.Keep)}
}

// Close ends every request that hangs or waits, so that the server that carries
// the simulator can stop. It may be called twice.
func (s *Simulator) Close() { s.close.Do(func() { close(s.closed) }) }

// ServeHTTP answers POSTs to any path that ends in /chat/completions, and GETs
// of /models with a list of one.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"simulator","object":"model","created":0,"owned_by":"onereply"}]}`)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.chat(w, r)
	default:
		refuse(w, http.StatusNotFound, "not_found", "the simulator has no "+r.Method+" "+r.URL.Path)
	}
}

func (s *Simulator) chat(w http.ResponseWriter, r *http.Request) {
	request, asked, err := readChat(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request", err.Error())
		return
	}
	request.Path = r.URL.Path
	entry := s.log.open(request, r.Header)
	defer s.log.end(entry)
	plan, err := s.plan(s.log.request(entry))
	if err == nil && !asked.stream {
		err = fmt.Errorf("the simulator only streams: set stream to true")
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request", err.Error())
		return
	}
	p := &player{writer: w, request: r, plan: plan, closed: s.closed, wire: &chatWire{w: w, model: request.Model, usage: asked.usage}}
	defer func() { s.log.note(entry, p.said.String(), p.left) }()
	p.play()
}

func (s *Simulator) plan(r Request) (Plan, error) {
	if s.options.Script != nil {
		if plan, ok := s.options.Script(r); ok {
			return plan, nil
		}
	}
	return ParsePlan(r.Prompt, r.Attempt)
}

// wishes are the ways of answering a request may ask for.
type wishes struct{ stream, usage bool }

// readChat reads a chat completions request.
func readChat(body io.Reader) (r Request, asked wishes, err error) {
	var in struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return r, asked, fmt.Errorf("reading the request: %w", err)
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return r, asked, fmt.Errorf("reading the request: %w", err)
	}
	if len(in.Messages) == 0 {
		return r, asked, fmt.Errorf("messages is empty")
	}
	r.Model = in.Model
	for i, m := range in.Messages {
		text, err := textOf(m.Content)
		if err != nil {
			return r, asked, fmt.Errorf("messages[%d]: %w", i, err)
		}
		// What real providers refuse is refused here, so that a poisoned history shows.
		if strings.TrimSpace(text) == "" {
			return r, asked, fmt.Errorf("messages[%d]: content is empty", i)
		}
		r.Messages = append(r.Messages, Message{Role: m.Role, Text: text})
		if m.Role == "user" {
			r.Prompt = text
		}
	}
	r.Key = keyOf(r.Prompt)
	return r, wishes{stream: in.Stream, usage: in.Options.Usage}, nil
}

// textOf reads a message's text, as a string or in parts.
func textOf(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("content: %w", err)
	}
	for _, p := range parts {
		text += p.Text
	}
	return text, nil
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorObject(status, code, message))
}

// Record is one request as it arrived and how it went.
type Record struct {
	Request
	Header  http.Header
	Started time.Time
	Ended   time.Time // zero while it is being answered
	Said    string    // the text that was sent, faults and all
	Left    bool      // the client went away before the end
}
