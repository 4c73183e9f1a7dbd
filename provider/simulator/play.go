package simulator

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// wire is how one provider's stream is spelled. The player calls open first and
// end last, if it comes to that, and flushes what each has written.
type wire interface {
	open()
	// put sends a piece of one kind.
	put(k kind, text string)
	// fail sends an error event, broken an event that cannot be read.
	fail(p Plan, words int)
	broken()
	end(p Plan, words int)
	// errorBody is the body of an error status.
	errorBody(status int, code string) []byte
}

// kind is what a piece of a stream is.
type kind string

const (
	content  kind = "content"
	thinking kind = "thinking"
	refusal  kind = "refusal"
	tool     kind = "tool" // the text is the arguments
)

// line is what the pieces of a stream travel on.
type line interface {
	// flush sends what was written; an error means that nobody reads any more.
	flush() error
	// drop ends the line without a farewell, by a reset if so told.
	drop(reset bool)
}

// player carries out one plan.
type player struct {
	ctx    context.Context // ends when nobody wants the rest
	plan   Plan
	closed <-chan struct{}
	wire   wire
	line   line

	said strings.Builder
	left bool
}

// play answers one request.
func (p *player) play(w http.ResponseWriter, r *http.Request) {
	if p.wait(p.plan.Delay) && p.refuse(w, r) {
		p.stream()
	}
}

// refuse does what happens in place of a stream, and otherwise reports true with
// the headers of one set.
func (p *player) refuse(w http.ResponseWriter, r *http.Request) bool {
	if p.plan.RetryAfter != "" {
		w.Header().Set("Retry-After", p.plan.RetryAfter)
	}
	switch p.plan.Fault {
	case Status:
		body(w, p.plan.Status, "application/json", string(p.wire.errorBody(p.plan.Status, p.plan.Code)))
		return false
	case Redirect:
		w.Header().Set("Location", r.URL.Path+"/elsewhere")
		w.WriteHeader(p.plan.Status)
		return false
	case Raw:
		body(w, http.StatusOK, p.plan.ContentType, p.plan.Body)
		return false
	}
	if p.plan.After == Before {
		p.fault(0)
		return false
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return true
}

func body(w http.ResponseWriter, status int, contentType, text string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// stream says the words and meets the fault where the plan puts it.
func (p *player) stream() {
	p.wire.open()
	p.flush()
	if p.plan.Thinking != "" {
		for _, word := range strings.SplitAfter(p.plan.Thinking, " ") {
			p.wire.put(thinking, word)
		}
		p.flush()
	}
	if p.plan.Refusal != "" {
		p.wire.put(refusal, p.plan.Refusal)
	}
	var words []string
	if p.plan.Text != "" {
		words = strings.SplitAfter(p.plan.Text, " ")
	}
	for i, word := range words {
		if p.plan.Fault != None && i >= p.plan.After {
			p.fault(i)
			return
		}
		if i > 0 && !p.wait(p.plan.Pace) {
			return
		}
		p.wire.put(content, word)
		p.said.WriteString(word)
		p.flush()
	}
	if p.plan.Fault != None {
		p.fault(len(words))
		return
	}
	p.wire.end(p.plan, len(words))
}

func (p *player) fault(words int) {
	switch p.plan.Fault {
	case Cut:
		p.line.drop(false)
	case Reset:
		p.line.drop(true)
	case Hang:
		p.hang()
	case ErrorEvent, Failed, Cancelled:
		p.wire.fail(p.plan, words)
	case BrokenJSON:
		p.wire.broken()
	case ToolCall:
		p.wire.put(tool, `{"city":"Paris"}`)
		p.plan.Finish = "tool_calls"
		p.wire.end(p.plan, words)
	case CutTool:
		p.wire.put(tool, `{"city":"Par`)
		p.plan.Finish = "length"
		p.wire.end(p.plan, words)
	}
}

// wait reports false when the client left or the simulator closed meanwhile.
func (p *player) wait(d time.Duration) bool {
	if d <= 0 {
		p.left = p.ctx.Err() != nil
		return !p.left
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		p.left = true
	case <-p.closed:
	}
	return false
}

func (p *player) hang() {
	select {
	case <-p.ctx.Done():
		p.left = true
	case <-p.closed:
	}
}

func (p *player) flush() {
	if err := p.line.flush(); err != nil {
		p.left = true
	}
}

// connection is the line to a client.
type connection struct{ w http.ResponseWriter }

func (c connection) flush() error { return http.NewResponseController(c.w).Flush() }

// drop ends the connection, or over HTTP/2, where streams share one, the stream.
func (c connection) drop(reset bool) {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn() // no polite farewell
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
