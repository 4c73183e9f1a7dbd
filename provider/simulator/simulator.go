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

	operations operations
}

// New returns a simulator.
func New(o Options) *Simulator {
	if o.Keep <= 0 {
		o.Keep = 10_000
	}
	return &Simulator{options: o, closed: make(chan struct{}), log: newLog(o.Keep), operations: operations{byID: map[string]*operation{}}}
}

// Close ends every request that hangs or waits, so that the server that carries
// the simulator can stop, and what is made in the background. It may be called
// twice.
func (s *Simulator) Close() {
	s.close.Do(func() { close(s.closed) })
	s.operations.making.Wait()
}

// wires are the paths that start work, by how they end.
var wires = map[string]struct {
	read func(io.Reader) (Request, wishes, error)
	with func(w http.ResponseWriter, r Request, asked wishes) wire
}{
	"/chat/completions": {readChat, func(w http.ResponseWriter, r Request, asked wishes) wire {
		return &chatWire{w: w, model: r.Model, usage: asked.usage}
	}},
	"/responses": {readResponses, func(w http.ResponseWriter, r Request, _ wishes) wire {
		return &responsesWire{id: fmt.Sprintf("resp_foreground_%d", r.Number), model: r.Model, say: func(e numberedEvent) { _, _ = io.WriteString(w, e.data) }}
	}},
	"/messages": {readMessages, func(w http.ResponseWriter, r Request, _ wishes) wire {
		return &messagesWire{w: w, model: r.Model}
	}},
}

// ServeHTTP answers POSTs to any path that ends in /chat/completions, /responses
// or /messages, lookups and cancels below /responses, and GETs of /models with a
// list of one.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for end := range wires {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, end) {
			s.answer(w, r, end)
			return
		}
	}
	switch {
	case strings.Contains(r.URL.Path, "/responses/"):
		s.lookup(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		body(w, http.StatusOK, "application/json", `{"object":"list","data":[{"id":"simulator","object":"model","created":0,"owned_by":"onereply"}]}`)
	default:
		refuse(w, http.StatusNotFound, "not_found", "the simulator has no "+r.Method+" "+r.URL.Path)
	}
}

// answer carries out the plan of a request that starts work.
func (s *Simulator) answer(w http.ResponseWriter, r *http.Request, end string) {
	spelling := wires[end]
	request, asked, err := spelling.read(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request", err.Error())
		return
	}
	request.Path = r.URL.Path
	entry := s.log.open(request, r.Header)
	defer s.log.end(entry)
	request = s.log.request(entry)
	plan, err := s.plan(request)
	if err == nil && !asked.stream {
		err = fmt.Errorf("the simulator only streams: set stream to true")
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request", err.Error())
		return
	}
	p := &player{ctx: r.Context(), plan: plan, closed: s.closed, wire: spelling.with(w, request, asked), line: connection{w}}
	if !asked.background {
		defer func() { s.log.note(entry, p.said.String(), p.left) }()
		p.play(w, r)
		return
	}
	if p.refuse(w, r) {
		words, left := s.follow(w, r, s.background(r.Context(), request, plan), -1, plan.ofConnection())
		s.log.note(entry, firstWords(plan.Text, words), left)
	}
}

// firstWords gives what was said of a text.
func firstWords(text string, n int) string {
	words := strings.SplitAfter(text, " ")
	return strings.Join(words[:min(n, len(words))], "")
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
type wishes struct{ stream, usage, background bool }

// turn is a message of a request, as it is spelled.
type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// take reads the turns of a request, which its wire calls by the name.
func (r *Request) take(name string, turns []turn) error {
	if len(turns) == 0 {
		return fmt.Errorf("%s is empty", name)
	}
	for i, m := range turns {
		text, err := textOf(m.Content)
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		// What real providers refuse is refused here, so that a poisoned history shows.
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s[%d]: content is empty", name, i)
		}
		r.Messages = append(r.Messages, Message{Role: m.Role, Text: text})
		if m.Role == "user" {
			r.Prompt = text
		}
	}
	r.Key = keyOf(r.Prompt)
	return nil
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
