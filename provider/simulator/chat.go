package simulator

import (
	"encoding/json"
	"fmt"
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

// failText is the message of every error the simulator makes in a stream.
const failText = "the simulator was told to fail"

// spell gives the JSON of what is built here of strings and numbers.
func spell(data object) string {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("simulator: an event that is no JSON: " + err.Error())
	}
	return string(raw)
}

func (c *chatWire) event(data object) { _, _ = io.WriteString(c.w, "data: "+spell(data)+"\n\n") }

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

func (c *chatWire) fail(p Plan, _ int) {
	c.event(object{"error": object{"message": failText, "type": p.Code, "code": nil}})
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
	return []byte(spell(object{"error": object{"message": message, "type": kind, "param": nil, "code": named}}))
}

// readChat reads a chat completions request.
func readChat(body io.Reader) (r Request, asked wishes, err error) {
	var in struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []turn `json:"messages"`
	}
	if err := readJSON(body, &in); err != nil {
		return r, asked, err
	}
	r.Model = in.Model
	return r, wishes{stream: in.Stream, usage: in.Options.Usage}, r.take("messages", in.Messages)
}

// readJSON reads a request's body.
func readJSON(body io.Reader, into any) error {
	raw, err := io.ReadAll(body)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	return nil
}

// quote spells a text as JSON.
func quote(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic("simulator: a text that is no JSON: " + err.Error()) // every string has one
	}
	return raw
}
