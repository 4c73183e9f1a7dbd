package simulator

import (
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
	fail(code string)
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

// player carries out one plan.
type player struct {
	writer  http.ResponseWriter
	request *http.Request
	plan    Plan
	closed  <-chan struct{}
	wire    wire

	said strings.Builder
	left bool
}

func (p *player) play() {
	if !p.wait(p.plan.Delay) {
		return
	}
	if p.plan.RetryAfter != "" {
		p.writer.Header().Set("Retry-After", p.plan.RetryAfter)
	}
	switch p.plan.Fault {
	case Status:
		p.body(p.plan.Status, "application/json", string(p.wire.errorBody(p.plan.Status, p.plan.Code)))
		return
	case Redirect:
		p.writer.Header().Set("Location", p.request.URL.Path+"/elsewhere")
		p.writer.WriteHeader(p.plan.Status)
		return
	case Raw:
		p.body(http.StatusOK, p.plan.ContentType, p.plan.Body)
		return
	}
	if p.plan.After == Before {
		p.fault(0)
		return
	}
	p.stream()
}

func (p *player) body(status int, contentType, text string) {
	p.writer.Header().Set("Content-Type", contentType)
	p.writer.WriteHeader(status)
	_, _ = io.WriteString(p.writer, text)
}

// stream says the words and meets the fault where the plan puts it.
func (p *player) stream() {
	p.writer.Header().Set("Content-Type", "text/event-stream")
	p.writer.Header().Set("Cache-Control", "no-cache")
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
		p.drop(false)
	case Reset:
		p.drop(true)
	case Hang:
		p.hang()
	case ErrorEvent:
		p.wire.fail(p.plan.Code)
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
		p.left = p.request.Context().Err() != nil
		return !p.left
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.request.Context().Done():
		p.left = true
	case <-p.closed:
	}
	return false
}

func (p *player) hang() {
	select {
	case <-p.request.Context().Done():
		p.left = true
	case <-p.closed:
	}
}

func (p *player) flush() {
	if err := http.NewResponseController(p.writer).Flush(); err != nil {
		p.left = true
	}
}

// drop ends the connection, or over HTTP/2, where streams share one, the stream.
func (p *player) drop(reset bool) {
	conn, _, err := http.NewResponseController(p.writer).Hijack()
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
