// Package anthropic answers through Anthropic's official Go SDK: its Messages,
// streamed.
//
// A message cannot be looked up afterwards and its endpoint documents no
// idempotency key, so a call whose stream broke off is an unknown outcome. The
// SDK encodes and decodes; what it would decide by itself is taken from it. Its
// retries are off (it would send again even after an answer that broke off), its
// HTTP client is provider.ClientWith's, it reads no environment and traces
// nothing, and a stream counts as an answer only with message_stop. Start reading
// here; message.go gathers a message and says what its end means.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// Options say where messages are answered. Zero members take the defaults named.
type Options struct {
	BaseURL   string            // default https://api.anthropic.com
	APIKey    string            // sent as a bearer token; empty: none
	Transport http.RoundTripper // carries all requests; default provider.NewTransport()
	MaxTokens int               // the longest answer asked for; default 8192
}

// Model is a model behind Messages. It is safe for concurrent use.
type Model struct {
	name      string
	maxTokens int64
	transport http.RoundTripper
	messages  sdk.MessageService
}

var _ provider.Model = (*Model)(nil)

// New returns the model of that name. The error says what is wrong with the
// options.
func New(name string, o Options) (*Model, error) {
	o.BaseURL = cmp.Or(o.BaseURL, "https://api.anthropic.com")
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("base URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("base URL %q must be http:// or https:// and a host", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("base URL %q must not carry a user, a query or a fragment", u.Redacted())
	case o.MaxTokens < 0:
		return nil, errors.New("max tokens must not be negative")
	}
	if o.Transport == nil {
		o.Transport = provider.NewTransport()
	}
	settings := []option.RequestOption{option.WithBaseURL(o.BaseURL), option.WithMaxRetries(0), option.WithoutOpenTelemetry(), option.WithOpenTelemetryPropagation(false)}
	if o.APIKey != "" {
		settings = append(settings, option.WithAPIKey(o.APIKey))
	}
	return &Model{
		name: name, maxTokens: int64(cmp.Or(o.MaxTokens, 8192)), transport: o.Transport,
		// The service and not the SDK's client, which takes keys, URLs, profiles and
		// headers from variables and files meant for something else on this machine.
		messages: sdk.NewMessageService(settings...),
	}, nil
}

// Name returns the model's name.
func (m *Model) Name() string { return m.name }

// Start sends the request once and streams the answer. Thinking is no part of
// the text, NULs are left out of it, and one of 4 MiB or more is useless.
func (m *Model) Start(ctx context.Context, call onereply.Call, r provider.Request, emit func(delta string) error) (provider.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := &provider.Tap{}
	stream := m.messages.NewStreaming(ctx, m.params(r),
		option.WithHTTPClient(provider.ClientWith(call, m.transport)),
		option.WithMiddleware(body.Middleware))
	defer func() { _ = stream.Close() }() // the answer is complete or lost by then
	a := &message{call: call, emit: emit, model: m.name}
	for !a.stopped && stream.Err() == nil && stream.Next() {
		if err := a.take(stream.Current()); err != nil {
			return provider.Answer{}, err
		}
	}
	return a.end(stream.Err(), body)
}

func (m *Model) params(r provider.Request) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: m.name, MaxTokens: m.maxTokens}
	for _, turn := range r.Messages {
		switch turn.Role {
		case provider.System:
			p.System = []sdk.TextBlockParam{{Text: turn.Text}}
		case provider.Assistant:
			p.Messages = append(p.Messages, sdk.NewAssistantMessage(sdk.NewTextBlock(turn.Text)))
		default:
			p.Messages = append(p.Messages, sdk.NewUserMessage(sdk.NewTextBlock(turn.Text)))
		}
	}
	return p
}
