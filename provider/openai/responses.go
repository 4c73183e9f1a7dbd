package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// ResponsesOptions say where responses are made and how they are looked up. Zero
// members take the defaults named.
type ResponsesOptions struct {
	BaseURL   string            // default https://api.openai.com/v1
	APIKey    string            // sent as a bearer token; empty: none
	Transport http.RoundTripper // carries all requests; default provider.NewTransport()

	// Background makes responses that go on whoever listens and can be looked up
	// by an id, which is checkpointed with the first event. The provider keeps
	// them for some minutes. Without it a response is made for one connection,
	// is not stored, and is an unknown outcome when the connection breaks.
	Background bool

	// MissingFor is how long a lookup that finds nothing is repeated: a response
	// may be found only some time after it was made. Default 1 minute.
	MissingFor time.Duration
	// QueuedFor is how long a response that never begins is waited for.
	// Default 2 minutes.
	QueuedFor time.Duration
	// QuietFor is how long a stream may say nothing before the response is looked
	// up beside it. Default 30 seconds.
	QuietFor time.Duration
	// PollEvery is the pause between two lookups; it grows to ten times as much.
	// Default 500 milliseconds.
	PollEvery time.Duration
}

func (o ResponsesOptions) withDefaults() ResponsesOptions {
	o.BaseURL = cmp.Or(o.BaseURL, "https://api.openai.com/v1")
	o.MissingFor = cmp.Or(o.MissingFor, time.Minute)
	o.QueuedFor = cmp.Or(o.QueuedFor, 2*time.Minute)
	o.QuietFor = cmp.Or(o.QuietFor, 30*time.Second)
	o.PollEvery = cmp.Or(o.PollEvery, 500*time.Millisecond)
	if o.Transport == nil {
		o.Transport = provider.NewTransport()
	}
	return o
}

// Responses is a model behind OpenAI's Responses. It is safe for concurrent use.
type Responses struct {
	model   string
	o       ResponsesOptions
	service responses.ResponseService
	lookup  *http.Client
}

var _ provider.Recoverer = (*Responses)(nil)

// NewResponses returns the model of that name. The error says what is wrong with
// the base URL.
func NewResponses(model string, o ResponsesOptions) (*Responses, error) {
	o = o.withDefaults()
	if err := checkBase(o.BaseURL); err != nil {
		return nil, err
	}
	return &Responses{
		model: model, o: o, lookup: provider.Lookup(o.Transport, "/cancel"),
		// The service and not the SDK's client, for the reason given in NewCompatible.
		service: responses.NewResponseService(
			option.WithBaseURL(o.BaseURL), option.WithAPIKey(o.APIKey), option.WithMaxRetries(0),
		),
	}, nil
}

// checkBase says what is wrong with a base URL.
func checkBase(baseURL string) error {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return fmt.Errorf("base URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("base URL %q must be http:// or https:// and a host", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("base URL %q must not carry a user, a query or a fragment", u.Redacted())
	}
	return nil
}

// Name returns the model's name.
func (m *Responses) Name() string { return m.model }

// Start sends the request once and streams the answer. In the background the
// response's id is checkpointed before anything else is done with the first
// event; from then on a stream that breaks off is followed by lookups, until the
// provider says how the response ended or ctx ends. Thinking is no part of the
// text, NULs are left out of it, and one of 4 MiB or more is useless.
func (m *Responses) Start(ctx context.Context, call onereply.Call, r provider.Request, emit func(delta string) error) (provider.Answer, error) {
	read := &reading{model: m.model, emit: emit, used: call.Used, last: -1}
	if m.o.Background {
		read.made = func(id string) error { return call.Checkpoint(ctx, id) }
	}
	err := m.stream(ctx, read, func(ctx context.Context, body *provider.Tap) *ssestream.Stream[responses.ResponseStreamEventUnion] {
		return m.service.NewStreaming(ctx, m.params(r),
			option.WithHTTPClient(provider.ClientWith(call, m.o.Transport)),
			option.WithMiddleware(body.Middleware))
	})
	if m.o.Background && read.id != "" {
		return m.follow(ctx, read, err)
	}
	return read.answer(err)
}

// stream reads one stream to its end. What it returns is nil once the response
// has ended, and else why the stream ended before it.
func (m *Responses) stream(ctx context.Context, read *reading, open func(context.Context, *provider.Tap) *ssestream.Stream[responses.ResponseStreamEventUnion]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := &provider.Tap{}
	stream := open(ctx, body)
	defer func() { _ = stream.Close() }() // the answer is complete or lost by then
	if m.o.Background {
		quiet := time.AfterFunc(m.o.QuietFor, func() { cancel(errQuiet) })
		defer quiet.Stop()
		body.Heard = func() { quiet.Reset(m.o.QuietFor) }
	}
	for read.end == nil && stream.Next() {
		if err := read.take(stream.Current()); err != nil {
			var fault *provider.StreamFault
			if errors.As(err, &fault) {
				return err // the response may go on beside it
			}
			return &ownError{err}
		}
	}
	if read.end != nil {
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, errQuiet) {
		return cause
	}
	return body.Broken(faultOf(stream.Err(), read.begun), read.events, false)
}

func (m *Responses) params(r provider.Request) responses.ResponseNewParams {
	input := make(responses.ResponseInputParam, 0, len(r.Messages))
	p := responses.ResponseNewParams{
		Model: m.model, Store: param.NewOpt(m.o.Background),
	}
	if m.o.Background {
		p.Background = param.NewOpt(true)
	}
	for _, message := range r.Messages {
		role := responses.EasyInputMessageRoleUser
		switch message.Role {
		case provider.System:
			p.Instructions = param.NewOpt(message.Text)
			continue
		case provider.Assistant:
			role = responses.EasyInputMessageRoleAssistant
		}
		input = append(input, responses.ResponseInputItemParamOfMessage(message.Text, role))
	}
	p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
	return p
}

// status is the HTTP status of an error of the SDK, 0 where it has none.
func status(err error) int {
	var e *sdk.Error
	if errors.As(err, &e) {
		return e.StatusCode
	}
	return 0
}
