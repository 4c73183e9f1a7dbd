package openai

import (
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// errQuiet ends a stream that says nothing for long.
var errQuiet = errors.New("the stream is quiet")

// ownError is an error of this side: nothing that a lookup could mend.
type ownError struct{ error }

// Unwrap gives the error.
func (e *ownError) Unwrap() error { return e.error }

// reading gathers one response, over as many streams as it takes.
type reading struct {
	emit func(string) error
	used func(onereply.Usage)
	made func(id string) error // told the id before anything else; nil: nobody wants it

	id         string
	saved      bool // whoever takes over knows the id
	model      string
	last       int64 // number of the last event; -1: none came
	unnumbered bool  // an event without a number came: no other stream can go on after it
	events     int
	begun      bool // output of any kind has come
	text       strings.Builder
	refusal    bool
	usage      onereply.Usage
	end        *responses.Response // the response as it ended
	ended      string              // its last status
}

// take adds one event.
func (r *reading) take(e responses.ResponseStreamEventUnion) error {
	if r.events++; e.JSON.SequenceNumber.Valid() {
		if e.SequenceNumber <= r.last {
			return nil // told before
		}
		r.last = e.SequenceNumber
	} else {
		r.unnumbered = true
	}
	switch e.Type {
	case "response.created", "response.queued", "response.in_progress":
		return r.name(e.Response.ID)
	case "response.output_text.delta":
		r.begun = r.begun || e.Delta != ""
		return r.say(e.Delta)
	case "response.refusal.delta":
		r.begun, r.refusal = true, true
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		r.begun = true
	case "response.output_item.added":
		return refuseTool(e.Item.Type)
	case "response.completed", "response.failed", "response.incomplete", "response.cancelled":
		r.finish(e.Response, strings.TrimPrefix(e.Type, "response."))
	case "error":
		return provider.Fault([]byte(e.RawJSON()), r.begun)
	}
	return nil
}

// name notes the id, once.
func (r *reading) name(id string) error {
	if r.id != "" || id == "" {
		return nil
	}
	r.id = id
	if r.made == nil {
		return nil
	}
	if err := r.made(id); err != nil {
		return err
	}
	r.saved = true
	return nil
}

func (r *reading) say(text string) error {
	if text = strings.ReplaceAll(text, "\x00", ""); text == "" {
		return nil
	}
	if r.text.Len()+len(text) >= maxContent {
		return onereply.Useless(onereply.CodeBadProviderResponse, errTooLong)
	}
	r.text.WriteString(text)
	return r.emit(text)
}

// refuseTool refuses items that are a tool's: this service runs none.
func refuseTool(item string) error {
	if item == "function_call" || strings.HasSuffix(item, "_call") {
		return onereply.RefusedPermanent(onereply.CodeToolCalls, fmt.Errorf("the model asks for a tool (%s)", item))
	}
	return nil
}

// finish notes how the response ended. The event's or the poll's word stands in
// where the response itself does not say.
func (r *reading) finish(response responses.Response, word string) {
	r.end, r.ended = &response, string(response.Status)
	if !over(r.ended) {
		r.ended = word
	}
	if response.Model != "" {
		r.model = response.Model
	}
	if u := response.Usage; u.InputTokens > 0 || u.OutputTokens > 0 {
		r.usage = onereply.Usage{InputTokens: int(u.InputTokens), OutputTokens: int(u.OutputTokens)}
		if r.used != nil {
			r.used(r.usage)
		}
	}
}

func over(status string) bool {
	switch status {
	case "completed", "failed", "incomplete", "cancelled":
		return true
	}
	return false
}

// answer says what became of the response when nothing more can be learned, err
// being why its stream ended, nil once it has ended itself.
func (r *reading) answer(err error) (provider.Answer, error) {
	if err != nil {
		return provider.Answer{}, err
	}
	switch r.ended {
	case "completed", "incomplete":
		return r.whole()
	case "failed":
		code, message := string(r.end.Error.Code), r.end.Error.Message
		e := onereply.ClassifyCode(code, "", r.begun || r.usage.OutputTokens > 0, fmt.Errorf("response %s failed: %q: %s", r.id, code, onereply.Short(message)))
		return provider.Answer{}, r.final(e)
	}
	e := onereply.UnknownOutcome(onereply.CodeProviderUnavailable, fmt.Errorf("response %s is %s at the provider", r.id, r.ended))
	return provider.Answer{}, r.final(e)
}

// final marks an outcome that a lookup could not better.
func (r *reading) final(err error) error {
	var e *onereply.CallError
	if errors.As(err, &e) {
		e.Final, e.Usage = true, r.usage
	}
	return err
}

// whole judges a response that ended with what it has.
func (r *reading) whole() (provider.Answer, error) {
	text, err := r.content()
	if err != nil {
		return provider.Answer{}, err
	}
	reason := r.end.IncompleteDetails.Reason
	blank := strings.TrimSpace(text) == ""
	switch {
	case r.ended == "incomplete" && reason == "content_filter":
		return provider.Answer{}, r.final(onereply.RefusedPermanent(onereply.CodeContentFiltered, errors.New("incomplete for content_filter")))
	case r.ended == "incomplete" && reason != "max_output_tokens":
		return provider.Answer{}, r.final(onereply.Useless(onereply.CodeBadProviderResponse, fmt.Errorf("incomplete for %q", reason)))
	case blank && r.refusal:
		return provider.Answer{}, r.final(onereply.RefusedPermanent(onereply.CodeContentFiltered, errors.New("the model declined")))
	case blank:
		return provider.Answer{}, r.final(onereply.Useless(onereply.CodeEmptyAnswer, errEmpty))
	}
	whole := provider.Answer{Text: text, Model: r.model, FinishReason: "stop", Usage: r.usage}
	if r.ended == "incomplete" {
		whole.FinishReason, whole.Truncated = "length", true
	}
	return whole, nil
}

// content is the text of the response as it ended. What was not streamed of it
// is streamed now; a server that leaves it out of the end has streamed it.
func (r *reading) content() (string, error) {
	var b strings.Builder
	for _, item := range r.end.Output {
		if err := refuseTool(item.Type); err != nil {
			return "", err
		}
		for _, part := range item.Content {
			switch part.Type {
			case "output_text":
				b.WriteString(part.Text)
			case "refusal":
				r.refusal = true
			}
		}
	}
	text, streamed := strings.ReplaceAll(b.String(), "\x00", ""), r.text.String()
	switch {
	case text == "":
		return streamed, nil
	case len(text) >= maxContent:
		return "", onereply.Useless(onereply.CodeBadProviderResponse, errTooLong)
	case strings.HasPrefix(text, streamed):
		if err := r.say(text[len(streamed):]); err != nil {
			return "", err
		}
	}
	return text, nil
}
