package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// operation is an answer made in the background: it goes on whoever listens, and
// can be looked up, followed and cancelled by its id.
type operation struct {
	id      string
	key     string
	plan    Plan
	stopped context.CancelFunc // ends the making

	mu      sync.Mutex
	events  []numberedEvent
	changed chan struct{}
	ended   bool
	lookups int
	streams int
	cancels int
}

// Operation is what became of an answer made in the background.
type Operation struct {
	ID      string
	Key     string
	Status  string // as a lookup finds it
	Lookups int    // GETs that did not ask for a stream
	Streams int    // GETs that did
	Cancels int
}

func (o *operation) add(e numberedEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.events = append(o.events, e)
	close(o.changed)
	o.changed = make(chan struct{})
}

// end lets readers go once they have read everything.
func (o *operation) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended = true
		close(o.changed)
	}
}

func (o *operation) snapshot() ([]numberedEvent, <-chan struct{}, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events, o.changed, o.ended
}

func (o *operation) state() string {
	events, _, _ := o.snapshot()
	for _, e := range slices.Backward(events) {
		if e.state != "" {
			return e.state
		}
	}
	return "" // never: its first event has one
}

// seen counts a lookup and reports whether it finds the operation.
func (o *operation) seen(stream bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if stream {
		o.streams++
	} else {
		o.lookups++
	}
	return o.lookups+o.streams > o.plan.Missing
}

// operations holds those of a simulator.
type operations struct {
	making sync.WaitGroup

	mu    sync.Mutex
	count int
	byID  map[string]*operation
	order []string
}

// background makes an answer and returns at once.
func (s *Simulator) background(ctx context.Context, r Request, plan Plan) *operation {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	o := &operation{key: r.Key, plan: plan, stopped: stop, changed: make(chan struct{})}
	s.operations.mu.Lock()
	s.operations.count++
	o.id = fmt.Sprintf("resp_%d", s.operations.count)
	// Whoever finds it finds a response with a status.
	w := &responsesWire{id: o.id, model: r.Model, background: true, say: o.add}
	w.step("response.created", "queued")
	w.step("response.queued", "queued")
	s.operations.byID[o.id] = o
	if s.operations.order = append(s.operations.order, o.id); len(s.operations.order) > s.options.Keep {
		delete(s.operations.byID, s.operations.order[0])
		s.operations.order = s.operations.order[1:]
	}
	s.operations.mu.Unlock()
	s.operations.making.Go(func() {
		defer o.end()
		defer stop()
		s.make(ctx, o, w)
	})
	return o
}

// make carries out the part of the plan that is the model's. What happens to a
// connection happens to the one that asked, in [Simulator.follow].
func (s *Simulator) make(ctx context.Context, o *operation, w *responsesWire) {
	plan := o.plan
	if plan.ofConnection() {
		plan.Fault, plan.After = None, Everything
	}
	p := &player{ctx: ctx, plan: plan, closed: s.closed, wire: w, line: nowhere{}}
	switch {
	case plan.Queued:
		p.hang()
	case p.wait(plan.Delay):
		w.step("response.in_progress", "in_progress")
		p.stream()
	}
	if ctx.Err() != nil && !w.over() {
		w.cancel()
	}
}

// nowhere is the line of an answer that is kept.
type nowhere struct{}

func (nowhere) flush() error { return nil }
func (nowhere) drop(bool)    {}

// follow streams an operation to a client from the event after a number, and
// meets the plan's fault of the connection if told to.
func (s *Simulator) follow(w http.ResponseWriter, r *http.Request, o *operation, after int, fault bool) (words int, left bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	p := &player{ctx: r.Context(), plan: o.plan, closed: s.closed, wire: &responsesWire{say: func(e numberedEvent) { _, _ = io.WriteString(w, e.data) }}, line: connection{w}}
	at := 0
	for {
		events, changed, ended := o.snapshot()
		for ; at < len(events); at++ {
			e := events[at]
			if e.number <= after {
				continue
			}
			if fault && (e.last || (e.word || words > 0) && words >= o.plan.After) {
				p.fault(words)
				return words, p.left
			}
			_, _ = io.WriteString(w, e.data)
			if e.word {
				words++
			}
		}
		p.flush()
		if ended || p.left {
			return words, p.left
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return words, true
		case <-s.closed:
			return words, false
		}
	}
}

// lookup answers GET …/responses/ID and POST …/responses/ID/cancel.
func (s *Simulator) lookup(w http.ResponseWriter, r *http.Request) {
	_, id, _ := strings.Cut(r.URL.Path, "/responses/")
	id, cancel := strings.CutSuffix(id, "/cancel")
	s.operations.mu.Lock()
	o := s.operations.byID[id]
	s.operations.mu.Unlock()
	stream := r.URL.Query().Get("stream") == "true"
	switch {
	case o == nil, r.Method == http.MethodGet && (cancel || !o.seen(stream)):
		refuse(w, http.StatusNotFound, "not_found", "the simulator has no response "+id)
	case r.Method == http.MethodPost && cancel:
		o.cancel(r.Context())
		body(w, http.StatusOK, "application/json", o.state())
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, "not_found", "the simulator looks up and cancels")
	case !stream:
		body(w, http.StatusOK, "application/json", o.state())
	case o.plan.NoResume:
		refuse(w, http.StatusBadRequest, "invalid_request", "this response cannot be streamed")
	default:
		after := -1
		if text := r.URL.Query().Get("starting_after"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				refuse(w, http.StatusBadRequest, "invalid_request", "starting_after is no number")
				return
			}
			after = n
		}
		s.follow(w, r, o, after, false)
	}
}

// cancel stops the making and waits until that shows.
func (o *operation) cancel(ctx context.Context) {
	o.mu.Lock()
	o.cancels++
	o.mu.Unlock()
	o.stopped()
	for {
		_, changed, ended := o.snapshot()
		if ended {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Operations returns what became of the answers made in the background, oldest
// first. Lookups and cancels are no [Record].
func (s *Simulator) Operations() []Operation {
	s.operations.mu.Lock()
	ids := slices.Clone(s.operations.order)
	s.operations.mu.Unlock()
	all := make([]Operation, 0, len(ids))
	for _, id := range ids {
		s.operations.mu.Lock()
		o := s.operations.byID[id]
		s.operations.mu.Unlock()
		if o != nil {
			all = append(all, o.report())
		}
	}
	return all
}

func (o *operation) report() Operation {
	var state struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(o.state()), &state); err != nil {
		panic("simulator: a state that is no JSON: " + err.Error()) // spelled here
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return Operation{ID: o.id, Key: o.key, Status: state.Status, Lookups: o.lookups, Streams: o.streams, Cancels: o.cancels}
}
