package anthropic

import (
	"errors"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// maxContent bounds an answer: more is a machine running away.
const maxContent = 4 << 20

// message gathers one streamed message.
type message struct {
	call onereply.Call
	emit func(string) error

	model   string
	text    strings.Builder
	begun   bool // output of any kind has come
	stopped bool // message_stop has come
	reason  sdk.StopReason
	events  int
	usage   onereply.Usage
}

// take adds one event. The SDK hands no pings over.
func (m *message) take(e sdk.MessageStreamEventUnion) error {
	m.events++
	switch e.Type {
	case "message_start":
		if e.Message.Model != "" {
			m.model = e.Message.Model
		}
		u := e.Message.Usage
		m.used(u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens, u.OutputTokens)
	case "content_block_start":
		return m.block(e.ContentBlock.Type, e.ContentBlock.Text)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return m.say(e.Delta.Text)
		case "thinking_delta":
			m.begun = true
		}
	case "message_delta":
		m.reason = e.Delta.StopReason
		u := e.Usage
		m.used(u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens, u.OutputTokens)
	case "message_stop":
		m.stopped = true
	}
	return nil
}

// used notes the tokens reported so far. The last event counts output alone
// where it says nothing of the input.
func (m *message) used(in, out int64) {
	if in > 0 {
		m.usage.InputTokens = int(in)
	}
	if out > 0 {
		m.usage.OutputTokens = int(out)
	}
	m.call.Used(m.usage)
}

// block judges a content block by its kind. Only text is shown; thinking is not,
// and a tool is refused: this service runs none.
func (m *message) block(kind, text string) error {
	switch {
	case kind == "text":
		return m.say(text)
	case strings.HasSuffix(kind, "tool_use"):
		return onereply.RefusedPermanent(onereply.CodeToolCalls, fmt.Errorf("the model asks for a tool (%s)", kind))
	}
	m.begun = true
	return nil
}

func (m *message) say(text string) error {
	if text = strings.ReplaceAll(text, "\x00", ""); text == "" {
		return nil
	}
	m.begun = true
	if m.text.Len()+len(text) >= maxContent {
		return onereply.Useless(onereply.CodeBadProviderResponse, errors.New("the answer is longer than 4 MiB"))
	}
	m.text.WriteString(text)
	return m.emit(text)
}

// end says what the end of the stream means. An error it does not classify is
// for onereply.Classify, which knows what was seen on the wire.
func (m *message) end(err error, body *provider.Tap) (provider.Answer, error) {
	if why := body.Broken(m.fault(err, body), m.events, m.stopped); why != nil {
		return provider.Answer{}, why
	}
	text := m.text.String()
	blank := strings.TrimSpace(text) == ""
	switch m.reason {
	case sdk.StopReasonToolUse:
		return provider.Answer{}, onereply.RefusedPermanent(onereply.CodeToolCalls, errors.New("the model stopped for a tool"))
	case sdk.StopReasonRefusal:
		return provider.Answer{}, onereply.RefusedPermanent(onereply.CodeContentFiltered, errors.New("the model declined"))
	case sdk.StopReasonPauseTurn:
		return provider.Answer{}, onereply.Useless(onereply.CodeBadProviderResponse, errors.New("the turn was paused for a tool of the provider's that nobody asked for"))
	case "":
		return provider.Answer{}, onereply.UnknownOutcome(onereply.CodeProviderUnavailable, errors.New("the message stopped without a reason"))
	}
	if blank {
		return provider.Answer{}, onereply.Useless(onereply.CodeEmptyAnswer, errors.New("the answer holds no text"))
	}
	whole := provider.Answer{Text: text, Model: m.model, FinishReason: "stop", Usage: m.usage}
	if m.reason == sdk.StopReasonMaxTokens || m.reason == sdk.StopReasonModelContextWindowExceeded {
		whole.FinishReason, whole.Truncated = "length", true
	}
	return whole, nil
}

// fault classifies an error event, which the SDK hands over as an error with the
// status of the stream, 200. Its type is what counts.
func (m *message) fault(err error, body *provider.Tap) error {
	var e *sdk.Error
	if errors.As(err, &e) && body.Status() < 300 && body.Status() != 0 {
		return provider.Fault([]byte(e.RawJSON()), m.begun)
	}
	return err
}
