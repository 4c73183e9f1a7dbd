package simulator

import "time"

// Fault is what goes wrong.
type Fault string

// The faults. Those that happen in the middle say where by Plan.After.
const (
	None       Fault = ""
	Status     Fault = "status"      // an error status, Plan.Status, with Plan.Code in its body
	Redirect   Fault = "redirect"    // Plan.Status with a Location
	Raw        Fault = "raw"         // 200 with Plan.Body of type Plan.ContentType in place of a stream
	Cut        Fault = "cut"         // the connection is closed
	Reset      Fault = "reset"       // the connection is reset
	Hang       Fault = "hang"        // nothing more is sent until the client leaves
	NoEnd      Fault = "no-end"      // the stream ends cleanly, without any end mark
	ErrorEvent Fault = "error-event" // an error in the stream, with Plan.Code
	BrokenJSON Fault = "broken-json" // an event whose data is no JSON
	ToolCall   Fault = "toolcall"    // the model asks for a tool
	CutTool    Fault = "toolcall-cut"
	Failed     Fault = "failed" // the answer ends as failed, with Plan.Code, where the wire has a word for that
	Cancelled  Fault = "cancelled"
)

// Before, as Plan.After, is the moment before the status line.
const Before = -1

// Everything, as Plan.After, is the moment after the last word.
const Everything = 1 << 30

// Plan is what to do with one request.
type Plan struct {
	Delay time.Duration // before anything is sent
	Pace  time.Duration // between two words

	Text     string // what to say
	Thinking string // what to think before, in the fields for it
	Refusal  string // what to say in the field for refusals
	Finish   string // the reason why it ends: "stop", "length", "content_filter"
	NoFinish bool   // no reason is given; [DONE] alone ends the stream
	NoDone   bool   // the reason alone ends the stream
	Usage    [2]int // tokens in and out, where the request asked for them; zero: counted in words

	Fault       Fault
	After       int // the words said before the fault; Before, or Everything
	Status      int
	Code        string
	RetryAfter  string
	Body        string
	ContentType string

	// Of answers made in the background, which can be looked up.
	Queued   bool // never begins
	Missing  int  // how many lookups find nothing at first
	NoResume bool // a lookup cannot be streamed
}

// tokens is the usage to report for an answer of so many words.
func (p Plan) tokens(words int) (in, out int) {
	if p.Usage == [2]int{} {
		return 1, words
	}
	return p.Usage[0], p.Usage[1]
}

// ofConnection reports whether the fault is one of the line to the client, which
// an answer made in the background survives.
func (p Plan) ofConnection() bool {
	return p.Fault == Cut || p.Fault == Reset || p.Fault == NoEnd || p.Fault == BrokenJSON
}
