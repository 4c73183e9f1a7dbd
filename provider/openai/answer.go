package openai

import (
	"errors"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// maxContent bounds an answer: more is a machine running away.
const maxContent = 4 << 20

var (
	errTooLong = errors.New("the answer is longer than 4 MiB")
	errEmpty   = errors.New("the answer holds no text")
)

// answer gathers one streamed answer.
type answer struct {
	call onereply.Call
	emit func(string) error

	model   string
	text    strings.Builder
	think   thinkFilter
	content int    // bytes of content, thinking included
	refusal string // what was said in the field for refusals
	finish  string
	begun   bool // output of any kind has come
	chunks  int
	usage   onereply.Usage
}

// take adds one chunk.
func (a *answer) take(chunk sdk.ChatCompletionChunk) error {
	a.chunks++
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if u := chunk.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		a.usage = onereply.Usage{InputTokens: int(u.PromptTokens), OutputTokens: int(u.CompletionTokens)}
		a.call.Used(a.usage)
	}
	if len(chunk.Choices) == 0 {
		// The SDK knows an error by its error member; other servers send it flat.
		if _, ok := provider.ParseError([]byte(chunk.RawJSON())); ok {
			return provider.Fault([]byte(chunk.RawJSON()), a.begun)
		}
		return nil
	}
	choice := chunk.Choices[0]
	delta := choice.Delta
	if len(delta.ToolCalls) > 0 || delta.JSON.FunctionCall.Valid() {
		return onereply.RefusedPermanent(onereply.CodeToolCalls, errors.New("the model called a tool"))
	}
	a.begun = a.begun || delta.Content != "" || delta.Refusal != "" || thought(delta)
	if choice.FinishReason != "" {
		a.finish = choice.FinishReason
	}
	if len(a.refusal)+len(delta.Refusal) <= maxContent {
		a.refusal += delta.Refusal
	}
	if a.content += len(delta.Content); a.content >= maxContent {
		return onereply.Useless(onereply.CodeBadProviderResponse, errTooLong)
	}
	return a.say(a.think.write(strings.ReplaceAll(delta.Content, "\x00", "")))
}

func (a *answer) say(text string) error {
	if text == "" {
		return nil
	}
	a.text.WriteString(text)
	return a.emit(text)
}

// thought reports whether a delta carries thinking, which servers put into
// fields of their own.
func thought(delta sdk.ChatCompletionChunkChoiceDelta) bool {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if raw := delta.JSON.ExtraFields[name].Raw(); raw != "" && raw != "null" && raw != `""` {
			return true
		}
	}
	return false
}

// end says what the end of the stream means. An error it does not classify is
// for onereply.Classify, which knows what was seen on the wire.
func (a *answer) end(err error, body *provider.Tap) (provider.Answer, error) {
	if why := body.Broken(faultOf(err, a.begun), a.chunks, a.finish != "" || body.Done()); why != nil {
		return provider.Answer{}, why
	}
	if err := a.say(a.think.rest()); err != nil {
		return provider.Answer{}, err
	}
	return a.whole()
}

// faultOf classifies the errors that the SDK knows as error events.
func faultOf(err error, begun bool) error {
	var event *ssestream.StreamError
	if errors.As(err, &event) {
		return provider.Fault(event.Event.Data, begun)
	}
	return err
}

// whole judges an answer that was ended by its mark.
func (a *answer) whole() (provider.Answer, error) {
	text := a.text.String()
	blank := strings.TrimSpace(text) == ""
	switch {
	case a.finish == "tool_calls" || a.finish == "function_call":
		return provider.Answer{}, onereply.RefusedPermanent(onereply.CodeToolCalls, errors.New("the model stopped for a tool"))
	case a.finish == "content_filter":
		return provider.Answer{}, onereply.RefusedPermanent(onereply.CodeContentFiltered, errors.New("finish reason content_filter"))
	case blank && a.refusal != "":
		return provider.Answer{}, onereply.RefusedPermanent(onereply.CodeContentFiltered, errors.New("the model declined"))
	case a.finish == "error" || a.finish == "insufficient_system_resource":
		// OpenRouter's and DeepSeek's words for an answer that broke off.
		return provider.Answer{}, onereply.UnknownOutcome(onereply.CodeProviderUnavailable, fmt.Errorf("finish reason %s", a.finish))
	case blank:
		return provider.Answer{}, onereply.Useless(onereply.CodeEmptyAnswer, errEmpty)
	}
	whole := provider.Answer{Text: text, Model: a.model, FinishReason: "stop", Usage: a.usage}
	if a.finish == "length" {
		whole.FinishReason, whole.Truncated = "length", true
	}
	return whole, nil
}
