package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// responsesWire spells OpenAI's Responses. Every event is numbered, and goes to
// say, which writes it to a client or keeps it for lookups.
type responsesWire struct {
	id         string
	model      string
	background bool
	say        func(event numberedEvent)

	next    int // the next sequence number
	status  string
	text    strings.Builder
	refusal string
	tool    string
	begun   bool // the message item was announced
	usage   object
	failure object
	reason  string // why it is incomplete
}

// numberedEvent is one event as it is sent.
type numberedEvent struct {
	number int
	data   string
	word   bool   // it carries a piece of the answer
	last   bool   // nothing follows it
	state  string // the response as a lookup finds it from now on; empty: as before
}

// event sends one event of the type, with the members given.
func (r *responsesWire) event(kind string, members object) { r.send(kind, members, numberedEvent{}) }

func (r *responsesWire) send(kind string, members object, e numberedEvent) {
	members["type"], members["sequence_number"] = kind, r.next
	e.number, e.data = r.next, "event: "+kind+"\ndata: "+spell(members)+"\n\n"
	r.next++
	r.say(e)
}

// step announces a new status.
func (r *responsesWire) step(kind, status string) {
	r.status = status
	state := r.state()
	r.send(kind, object{"response": state}, numberedEvent{state: spell(state), last: r.over()})
}

// over reports whether the status is final.
func (r *responsesWire) over() bool {
	return r.status != "" && r.status != "queued" && r.status != "in_progress"
}

// state is the response as a lookup finds it now.
func (r *responsesWire) state() object {
	output := []object{}
	if r.text.Len() > 0 || r.refusal != "" {
		parts := []object{}
		if r.refusal != "" {
			parts = append(parts, object{"type": "refusal", "refusal": r.refusal})
		}
		if r.text.Len() > 0 {
			parts = append(parts, object{"type": "output_text", "text": r.text.String(), "annotations": []object{}})
		}
		output = append(output, object{"id": "msg_" + r.id, "type": "message", "role": "assistant", "status": "completed", "content": parts})
	}
	if r.tool != "" {
		output = append(output, object{"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": r.tool, "status": "completed"})
	}
	state := object{
		"id": r.id, "object": "response", "created_at": 1, "status": r.status, "model": r.model, "background": r.background,
		"output": output, "usage": r.usage, "error": r.failure, "incomplete_details": nil,
	}
	if r.reason != "" {
		state["incomplete_details"] = object{"reason": r.reason}
	}
	return state
}

func (r *responsesWire) open() {
	if r.background {
		return // it was announced when it was made
	}
	r.step("response.created", "in_progress")
	r.step("response.in_progress", "in_progress")
}

func (r *responsesWire) broken() {
	r.say(numberedEvent{number: r.next, data: "event: response.output_text.delta\ndata: {\"type\":\"response.output_\n\n"})
}

func (r *responsesWire) message() {
	if !r.begun {
		r.begun = true
		r.event("response.output_item.added", object{"output_index": 0, "item": object{"id": "msg_" + r.id, "type": "message", "role": "assistant", "status": "in_progress", "content": []object{}}})
	}
}

func (r *responsesWire) put(k kind, text string) {
	switch k {
	case thinking:
		r.event("response.reasoning_summary_text.delta", object{"item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": text})
	case refusal:
		r.message()
		r.refusal += text
		r.event("response.refusal.delta", object{"item_id": "msg_" + r.id, "output_index": 0, "content_index": 0, "delta": text})
	case tool:
		r.tool = text
		r.event("response.output_item.added", object{"output_index": 1, "item": object{"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "", "status": "in_progress"}})
		r.event("response.function_call_arguments.delta", object{"item_id": "fc_1", "output_index": 1, "delta": text})
	default:
		r.message()
		r.text.WriteString(text)
		r.send("response.output_text.delta", object{"item_id": "msg_" + r.id, "output_index": 0, "content_index": 0, "delta": text, "logprobs": []object{}}, numberedEvent{word: true})
	}
}

// fail spells a failure: as an error event alone, as a response that failed, or
// as one that was cancelled. Looked up, the first is a failed response too.
func (r *responsesWire) fail(p Plan, _ int) {
	if p.Fault == Cancelled {
		r.cancel()
		return
	}
	r.failure, r.status = object{"code": p.Code, "message": failText}, "failed"
	if p.Fault == Failed {
		r.step("response.failed", "failed")
		return
	}
	r.send("error", object{"code": p.Code, "message": failText, "param": nil}, numberedEvent{state: spell(r.state()), last: true})
}

func (r *responsesWire) cancel() { r.step("response.cancelled", "cancelled") }

func (r *responsesWire) end(p Plan, words int) {
	in, out := p.tokens(words)
	r.usage = object{"input_tokens": in, "output_tokens": out, "total_tokens": in + out}
	switch p.Finish {
	case "length":
		r.reason = "max_output_tokens"
	case "content_filter":
		r.reason = "content_filter"
	default:
		r.step("response.completed", "completed")
		return
	}
	r.step("response.incomplete", "incomplete")
}

func (r *responsesWire) errorBody(status int, code string) []byte {
	return errorObject(status, code, "the simulator was told to refuse")
}

// readResponses reads a request to make a response.
func readResponses(body io.Reader) (r Request, asked wishes, err error) {
	var in struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Background   bool            `json:"background"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
	}
	if err := readJSON(body, &in); err != nil {
		return r, asked, err
	}
	var turns []turn
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		turns = []turn{{Role: "user", Content: in.Input}}
	} else if err := json.Unmarshal(in.Input, &turns); err != nil {
		return r, asked, fmt.Errorf("input: %w", err)
	}
	if in.Instructions != "" {
		turns = append([]turn{{Role: "system", Content: quote(in.Instructions)}}, turns...)
	}
	r.Model = in.Model
	asked = wishes{stream: in.Stream, usage: true, background: in.Background}
	return r, asked, r.take("input", turns)
}
