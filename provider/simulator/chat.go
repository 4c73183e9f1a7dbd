package simulator

import (
	"encoding/json"
	"io"
	"net/http"
)

// chatWire spells OpenAI's chat completions.
type chatWire struct {
	w     http.ResponseWriter
	model string
	usage bool // was asked for
}

type object = map[string]any

func (c *chatWire) event(data object) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("simulator: an event that is no JSON: " + err.Error()) // built here of strings and numbers
	}
	_, _ = io.WriteString(c.w, "data: "+string(raw)+"\n\n")
}

func (c *chatWire) chunk(delta object, finish any) {
	c.event(object{
		"id": "chatcmpl-simulator", "object": "chat.completion.chunk", "created": 1, "model": c.model,
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func (c *chatWire) open()   { c.chunk(object{"role": "assistant", "content": ""}, nil) }
func (c *chatWire) broken() { _, _ = io.WriteString(c.w, "data: {\"choices\":[{\"delta\":\n\n") }

func (c *chatWire) put(k kind, text string) {
	switch k {
	case thinking:
		c.chunk(object{"reasoning_content": text}, nil)
	case refusal:
		c.chunk(object{"refusal": text}, nil)
	case tool:
		call := object{"index": 0, "id": "call_1", "type": "function", "function": object{"name": "weather", "arguments": text}}
		c.chunk(object{"tool_calls": []object{call}}, nil)
	default:
		c.chunk(object{"content": text}, nil)
	}
}

func (c *chatWire) fail(code string) {
	c.event(object{"error": object{"message": "the simulator was told to fail", "type": code, "code": nil}})
}

func (c *chatWire) end(p Plan, words int) {
	if !p.NoFinish {
		c.chunk(object{}, p.Finish)
	}
	if in, out := p.tokens(words); c.usage {
		c.event(object{
			"id": "chatcmpl-simulator", "object": "chat.completion.chunk", "created": 1, "model": c.model, "choices": []object{},
			"usage": object{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out},
		})
	}
	if !p.NoDone {
		_, _ = io.WriteString(c.w, "data: [DONE]\n\n")
	}
}

func (c *chatWire) errorBody(status int, code string) []byte {
	return errorObject(status, code, "the simulator was told to refuse")
}

// errorObject is OpenAI's form of an error.
func errorObject(status int, code, message string) []byte {
	kind := "invalid_request_error"
	switch {
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case status >= 500:
		kind = "server_error"
	}
	var named any
	if code != "" {
		named = code
	}
	raw, err := json.Marshal(object{"error": object{"message": message, "type": kind, "param": nil, "code": named}})
	if err != nil {
		panic("simulator: an error that is no JSON: " + err.Error()) // built here of strings
	}
	return raw
}
