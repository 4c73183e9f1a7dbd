// Package openai answers through OpenAI's official Go SDK, on two wires:
// OpenAI's own Responses, which can be looked up when they are made in the
// background ([NewResponses]), and streamed chat completions, which Ollama, vLLM,
// llama.cpp, LM Studio, OpenRouter and many others share ([NewCompatible]).
//
// The SDK encodes and decodes; what it would decide by itself is taken from it.
// Its retries are off, its HTTP client is provider.ClientWith's, or
// provider.Lookup's where nothing can be started, it reads no environment, and a
// stream counts as an answer only with its end mark, which the SDK does not ask
// for. Start reading at compatible.go, where answer.go gathers an answer, or at
// responses.go, where reading.go does and follow.go goes on after a broken
// stream; provider.Tap watches the bytes and says what an end without the mark means.
package openai

import (
	"context"
	"net/http"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// endWait is how long a server may take to close a stream after it gave the
// finish reason: the answer is whole by then, only the usage may follow.
const endWait = 2 * time.Second

// Compatible is a model behind chat completions. It is safe for concurrent use.
type Compatible struct {
	model     string
	transport http.RoundTripper
	chat      sdk.ChatCompletionService
}

var _ provider.Model = (*Compatible)(nil)

// NewCompatible returns the model of that name behind the base URL, such as
// http://127.0.0.1:11434/v1. The key is sent as a bearer token; empty: none. The
// transport carries all calls and is shared between them, see
// provider.NewTransport. The error says what is wrong with the base URL.
func NewCompatible(model, baseURL, apiKey string, transport http.RoundTripper) (*Compatible, error) {
	if err := checkBase(baseURL); err != nil {
		return nil, err
	}
	// The service and not the SDK's client, which takes keys, URLs and headers
	// from variables meant for something else on this machine.
	return &Compatible{model: model, transport: transport, chat: sdk.NewChatCompletionService(
		option.WithBaseURL(baseURL), option.WithAPIKey(apiKey), option.WithMaxRetries(0),
	)}, nil
}

// Name returns the model's name.
func (c *Compatible) Name() string { return c.model }

// Start sends the request once and streams the answer. Beside what the contract
// says: thinking, in its own fields or in a leading <think> block, is no part of
// the text; NULs are left out of it; and one of 4 MiB or more is useless.
func (c *Compatible) Start(ctx context.Context, call onereply.Call, r provider.Request, emit func(delta string) error) (provider.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := &provider.Tap{}
	stream := c.chat.NewStreaming(ctx, c.params(r),
		option.WithHTTPClient(provider.ClientWith(call, c.transport)),
		option.WithMiddleware(body.Middleware))
	defer func() { _ = stream.Close() }() // the answer is complete or lost by then
	a := &answer{call: call, emit: emit, model: c.model}
	for stream.Next() {
		ended := a.finish != ""
		if err := a.take(stream.Current()); err != nil {
			return provider.Answer{}, err
		}
		if !ended && a.finish != "" {
			defer time.AfterFunc(endWait, cancel).Stop()
		}
	}
	return a.end(stream.Err(), body)
}

func (c *Compatible) params(r provider.Request) sdk.ChatCompletionNewParams {
	messages := make([]sdk.ChatCompletionMessageParamUnion, 0, len(r.Messages))
	for _, m := range r.Messages {
		switch m.Role {
		case provider.System:
			messages = append(messages, sdk.SystemMessage(m.Text))
		case provider.Assistant:
			messages = append(messages, sdk.AssistantMessage(m.Text))
		default:
			messages = append(messages, sdk.UserMessage(m.Text))
		}
	}
	return sdk.ChatCompletionNewParams{
		Model: c.model, Messages: messages,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
}
