package provider

import (
	"bytes"
	"encoding/json"

	"github.com/onereply/onereply"
)

// Error is an error as a provider words it, in a body or in a stream.
type Error struct {
	Code    string // the finest code there is: "insufficient_quota", "429"; may be empty
	Type    string // the wider kind: "invalid_request_error"; may be empty
	Message string // shortened to one line
}

// ParseError reads a provider's error object in the forms in use: OpenAI's and
// its compatibles' (an error member with code and type, or a bare string, or
// the members at the top), and Anthropic's (type, and details.error_code). It
// reports false for JSON that is no error, and for anything that is not JSON.
func ParseError(raw []byte) (Error, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return Error{}, false
		}
		raw = list[0]
	}
	var outer errorObject
	if json.Unmarshal(raw, &outer) != nil {
		return Error{}, false
	}
	inner := outer
	switch {
	case len(outer.Error) > 0 && outer.Error[0] == '{':
		inner = errorObject{}
		if json.Unmarshal(outer.Error, &inner) != nil {
			return Error{}, false
		}
	case len(outer.Error) > 0 && outer.Error[0] == '"':
		inner.Message = outer.Error
	case text(outer.Type) == "error" || text(outer.Object) == "error":
	case len(outer.Detail) > 0: // FastAPI, under vLLM and others
		inner.Message = outer.Detail
	default:
		return Error{}, false
	}
	e := Error{Code: text(inner.Details.ErrorCode), Type: text(inner.Type), Message: onereply.Short(text(inner.Message))}
	if e.Code == "" {
		e.Code = text(inner.Code)
	}
	if e.Type == "" || e.Type == "error" {
		e.Type = text(inner.Status)
	}
	return e, true
}

type errorObject struct {
	Error   json.RawMessage `json:"error"`
	Object  json.RawMessage `json:"object"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  json.RawMessage `json:"status"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Details errorDetails    `json:"details"`
}

// errorDetails is an object at Anthropic and anything at all elsewhere.
type errorDetails struct{ ErrorCode json.RawMessage }

// UnmarshalJSON takes the one member of interest and accepts every other form.
func (d *errorDetails) UnmarshalJSON(raw []byte) error {
	var object struct {
		ErrorCode json.RawMessage `json:"error_code"`
	}
	if json.Unmarshal(raw, &object) == nil {
		d.ErrorCode = object.ErrorCode
	}
	return nil
}

// text gives a string's value, a number's digits, and nothing for the rest.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}
