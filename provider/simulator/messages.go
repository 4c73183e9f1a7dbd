package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// messagesWire spells Anthropic's Messages.
type messagesWire struct {
	w     http.ResponseWriter
	model string

	block  int  // of the open content block
	opened kind // what the open block is; empty: none is open
}

func (m *messagesWire) event(kind string, members object) {
	members["type"] = kind
	_, _ = io.WriteString(m.w, "event: "+kind+"\ndata: "+spell(members)+"\n\n")
}

func (m *messagesWire) open() {
	m.event("message_start", object{"message": object{
		"id": "msg_simulator", "type": "message", "role": "assistant", "model": m.model, "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1},
	}})
	m.event("ping", object{})
}

func (m *messagesWire) broken() {
	_, _ = io.WriteString(m.w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":\n\n")
}

// begin opens a content block of the kind, after closing one of another.
func (m *messagesWire) begin(k kind, block object) {
	if m.opened == k {
		return
	}
	m.finish()
	m.opened = k
	m.event("content_block_start", object{"index": m.block, "content_block": block})
}

func (m *messagesWire) finish() {
	if m.opened == "" {
		return
	}
	m.event("content_block_stop", object{"index": m.block})
	m.block, m.opened = m.block+1, ""
}

func (m *messagesWire) delta(delta object) {
	m.event("content_block_delta", object{"index": m.block, "delta": delta})
}

// put sends a piece. What a model that declines says comes as text beside the
// stop reason, so a refusal is one here.
func (m *messagesWire) put(k kind, text string) {
	switch k {
	case thinking:
		m.begin(k, object{"type": "thinking", "thinking": "", "signature": ""})
		m.delta(object{"type": "thinking_delta", "thinking": text})
	case tool:
		m.begin(k, object{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": object{}})
		m.delta(object{"type": "input_json_delta", "partial_json": text})
	default:
		m.begin(content, object{"type": "text", "text": ""})
		m.delta(object{"type": "text_delta", "text": text})
	}
}

func (m *messagesWire) fail(p Plan, _ int) {
	m.event("error", object{"error": object{"type": p.Code, "message": failText}, "request_id": "req_simulator"})
}

// stopReasons are Anthropic's words for why an answer ends.
var stopReasons = map[string]string{
	"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use", "pause": "pause_turn",
}

func (m *messagesWire) end(p Plan, words int) {
	m.finish()
	reason := stopReasons[p.Finish]
	if p.Refusal != "" {
		reason = "refusal"
	}
	in, out := p.tokens(words)
	if !p.NoFinish {
		m.event("message_delta", object{
			"delta": object{"stop_reason": reason, "stop_sequence": nil},
			"usage": object{"input_tokens": in, "output_tokens": out},
		})
	}
	if !p.NoDone {
		m.event("message_stop", object{})
	}
}

// errorTypes are Anthropic's kinds of error, by status.
var errorTypes = map[int]string{
	401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 409: "conflict_error",
	413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}

func (m *messagesWire) errorBody(status int, code string) []byte {
	kind := errorTypes[status]
	switch {
	case kind == "" && status >= 500:
		kind = "api_error"
	case kind == "":
		kind = "invalid_request_error"
	}
	failure := object{"type": kind, "message": "the simulator was told to refuse"}
	if code != "" {
		failure["details"] = object{"error_code": code}
	}
	return []byte(spell(object{"type": "error", "error": failure, "request_id": "req_simulator"}))
}

// readMessages reads a request to answer messages.
func readMessages(body io.Reader) (r Request, asked wishes, err error) {
	var in struct {
		Model     string          `json:"model"`
		Stream    bool            `json:"stream"`
		MaxTokens int             `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []turn          `json:"messages"`
	}
	if err := readJSON(body, &in); err != nil {
		return r, asked, err
	}
	for i, m := range in.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return r, asked, fmt.Errorf("messages[%d]: role %s where %s is due", i, m.Role, want)
		}
	}
	if in.MaxTokens < 1 {
		return r, asked, fmt.Errorf("max_tokens is missing")
	}
	if len(in.System) > 0 {
		in.Messages = append([]turn{{Role: "system", Content: in.System}}, in.Messages...)
	}
	r.Model = in.Model
	return r, wishes{stream: in.Stream, usage: true}, r.take("messages", in.Messages)
}
