package providertest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/openai"
	"github.com/onereply/onereply/provider/providertest"
	"github.com/onereply/onereply/provider/simulator"
)

// start is the one method in which the planted adapters differ.
type start func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error)

type planted struct{ start }

func (planted) Name() string { return "planted" }

func (p planted) Start(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
	return p.start(ctx, call, r, emit)
}

// around plants a fault around a good adapter.
func around(fault func(good provider.Model) start) providertest.Adapter {
	return providertest.Adapter{
		New: func(baseURL string, transport http.RoundTripper) (provider.Model, error) {
			good, err := openai.NewCompatible("simulated", baseURL, "key", transport)
			if err != nil {
				return nil, err
			}
			return planted{fault(good)}, nil
		},
		Provider: func() providertest.Provider { return simulator.New(simulator.Options{}) },
	}
}

// deaf is a call that is told nothing of the wire.
type deaf struct{ onereply.Call }

func (deaf) Observe(onereply.Observation) {}

func TestTheSuiteFindsPlantedFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		adapter providertest.Adapter
		caught  []string // rows that must complain
		silent  []string // rows that must not
	}{
		"a good one": {
			adapter: around(func(good provider.Model) start { return good.Start }),
			silent:  providertest.Rows(),
		},
		"takes what came for the answer": {
			adapter: around(func(good provider.Model) start {
				return func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
					var text strings.Builder
					a, err := good.Start(ctx, call, r, func(d string) error { text.WriteString(d); return emit(d) })
					if err != nil && text.Len() > 0 {
						return provider.Answer{Text: text.String(), Model: "m", FinishReason: "stop"}, nil
					}
					return a, err
				}
			}),
			caught: []string{"cut in the middle", "cut after the last word", "an end without an end mark", "an overload in the stream, after output", "the content filter, in the middle", "an event that is no JSON", "cancelled in the middle"},
			silent: []string{"an answer", "500", "nobody listens"},
		},
		"tries again by itself, uncounted": {
			adapter: around(func(good provider.Model) start {
				return func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
					a, err := good.Start(ctx, call, r, emit)
					if err != nil {
						return good.Start(ctx, &providertest.Call{}, r, emit)
					}
					return a, err
				}
			}),
			caught: []string{"500", "429", "400", "cut before the first byte", "cut in the middle", "an end without an end mark", "nothing said"},
			silent: []string{"an answer"},
		},
		"leaves the SDK's retries on": {
			adapter: sdkRetries(),
			caught:  []string{"500", "429", "cut before the first byte", "nobody listens"},
			silent:  []string{"400"},
		},
		"hides the class": {
			adapter: around(func(good provider.Model) start {
				return func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
					a, err := good.Start(ctx, call, r, emit)
					if err != nil {
						err = onereply.UnknownOutcome(onereply.CodeProviderUnavailable, err)
					}
					return a, err
				}
			}),
			caught: []string{"429", "400", "401", "a tool call", "nothing said", "nobody listens", "a web page", "cancelled in the middle"},
			silent: []string{"an answer", "500"},
		},
		"says nothing of the wire": {
			adapter: around(func(good provider.Model) start {
				return func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
					return good.Start(ctx, deaf{call}, r, emit)
				}
			}),
			caught: []string{"429", "503 with a wish", "nobody listens", "an answer"},
		},
		"gives part of an answer beside an error": {
			adapter: around(func(good provider.Model) start {
				return func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
					a, err := good.Start(ctx, call, r, emit)
					if err != nil {
						a.Text = "half"
					}
					return a, err
				}
			}),
			caught: []string{"500", "cut in the middle"},
			silent: []string{"an answer"},
		},
		"streams what it does not answer": {
			adapter: around(func(good provider.Model) start {
				return func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
					return good.Start(ctx, call, r, func(d string) error { return errors.Join(emit(d), emit(d)) })
				}
			}),
			caught: []string{"an answer", "an answer after thinking"},
		},
		"forgets the limit of tokens": {
			adapter: around(func(good provider.Model) start {
				return func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
					a, err := good.Start(ctx, call, r, emit)
					a.Truncated = false
					return a, err
				}
			}),
			caught: []string{"an answer cut by a limit of tokens"},
			silent: []string{"an answer"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := providertest.Check(t, test.adapter, append(test.silent, test.caught...)...)
			compare(t, found, test.caught, test.silent)
		})
	}
}

// compare says which rows did not do what they should.
func compare(t *testing.T, found map[string][]string, caught, silent []string) {
	t.Helper()
	known := append(providertest.Rows(), providertest.Recoveries()...)
	for _, row := range slices.Concat(caught, silent) {
		if !slices.Contains(known, row) {
			t.Errorf("there is no row %q", row)
		}
	}
	for _, row := range caught {
		if len(found[row]) == 0 {
			t.Errorf("the fault went unseen in row %q", row)
		}
	}
	for _, row := range silent {
		if len(found[row]) > 0 {
			t.Errorf("row %q complains without a reason: %v", row, found[row])
		}
	}
}

// sdkRetries is an adapter as one would write it first: the SDK as it comes, on
// our client.
func sdkRetries() providertest.Adapter {
	return providertest.Adapter{
		New: func(baseURL string, transport http.RoundTripper) (provider.Model, error) {
			return planted{func(ctx context.Context, call onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
				chat := sdk.NewChatCompletionService(option.WithBaseURL(baseURL), option.WithAPIKey("key"),
					option.WithHTTPClient(provider.ClientWith(call, transport)), option.WithMaxRetryDelay(time.Millisecond))
				params := sdk.ChatCompletionNewParams{Model: "simulated"}
				for _, m := range r.Messages {
					params.Messages = append(params.Messages, sdk.UserMessage(m.Text))
				}
				stream := chat.NewStreaming(ctx, params)
				for stream.Next() {
					for _, c := range stream.Current().Choices {
						if err := emit(c.Delta.Content); err != nil {
							return provider.Answer{}, err
						}
					}
				}
				if err := stream.Err(); err != nil {
					return provider.Answer{}, err
				}
				return provider.Answer{}, errors.New("no matter")
			}}, nil
		},
		Provider: func() providertest.Provider { return simulator.New(simulator.Options{}) },
	}
}

// recovering plants faults around a good adapter whose calls can be recovered.
type recovering struct {
	provider.Recoverer
	start
	recover func(ctx context.Context, operation string, emit func(string) error) (provider.Answer, error)
}

func (r recovering) Start(ctx context.Context, call onereply.Call, q provider.Request, emit func(string) error) (provider.Answer, error) {
	if r.start != nil {
		return r.start(ctx, call, q, emit)
	}
	return r.Recoverer.Start(ctx, call, q, emit)
}

func (r recovering) Recover(ctx context.Context, operation string, emit func(string) error) (provider.Answer, error) {
	if r.recover != nil {
		return r.recover(ctx, operation, emit)
	}
	return r.Recoverer.Recover(ctx, operation, emit)
}

func TestTheSuiteFindsFaultsInRecovery(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault  func(good *openai.Responses) recovering
		caught []string
		silent []string
	}{
		"a good one": {
			fault:  func(*openai.Responses) recovering { return recovering{} },
			silent: append(providertest.Rows(), providertest.Recoveries()...),
		},
		"sends again although an operation is saved": {
			fault: func(good *openai.Responses) recovering {
				return recovering{recover: func(ctx context.Context, _ string, emit func(string) error) (provider.Answer, error) {
					return good.Start(ctx, &providertest.Call{}, provider.Request{Messages: []provider.Message{{Role: provider.User, Text: "[[say one two three]]"}}}, emit)
				}}
			},
			caught: []string{"recovery: it goes on", "recovery: it has ended"},
		},
		"saves the operation after the first text": {
			fault: func(good *openai.Responses) recovering {
				return recovering{start: func(ctx context.Context, call onereply.Call, q provider.Request, emit func(string) error) (provider.Answer, error) {
					late := &lateCheckpoint{Call: call}
					return good.Start(ctx, late, q, func(d string) error { return errors.Join(emit(d), late.save(ctx)) })
				}}
			},
			caught: []string{"recovery: it goes on"},
			silent: []string{"an answer"},
		},
		"takes a clean end of the stream for the answer": {
			fault: func(good *openai.Responses) recovering {
				return recovering{start: func(ctx context.Context, call onereply.Call, q provider.Request, emit func(string) error) (provider.Answer, error) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					var text strings.Builder
					a, err := good.Start(ctx, call, q, func(d string) error {
						text.WriteString(d)
						if text.String() == "one " && strings.Contains(q.Messages[len(q.Messages)-1].Text, "no-end 1") {
							cancel()
						}
						return emit(d)
					})
					if err != nil && text.Len() > 0 {
						return provider.Answer{Text: text.String(), Model: "m", FinishReason: "stop"}, nil
					}
					return a, err
				}}
			},
			caught: []string{"an end without an end mark, in the middle", "a quota in the stream"},
			silent: []string{"an answer"},
		},
		"shows thinking": {
			fault: func(good *openai.Responses) recovering {
				return recovering{
					start: func(ctx context.Context, call onereply.Call, q provider.Request, emit func(string) error) (provider.Answer, error) {
						return thinkAloud(emit)(good.Start(ctx, call, q, emit))
					},
					recover: func(ctx context.Context, operation string, emit func(string) error) (provider.Answer, error) {
						return thinkAloud(emit)(good.Recover(ctx, operation, emit))
					},
				}
			},
			caught: []string{"an answer after thinking", "recovery: after thinking"},
		},
		"takes 404 for absence": {
			fault: func(good *openai.Responses) recovering {
				return recovering{recover: func(ctx context.Context, operation string, emit func(string) error) (provider.Answer, error) {
					impatient, cancel := context.WithTimeoutCause(ctx, 15*time.Millisecond, errors.New("not found"))
					defer cancel()
					a, err := good.Recover(impatient, operation, emit)
					if err != nil && impatient.Err() != nil {
						return provider.Answer{}, onereply.NotSent(onereply.CodeProviderUnavailable, err)
					}
					return a, err
				}}
			},
			caught: []string{"recovery: not found at first", "recovery: never found"},
		},
		"waits for ever for what never begins": {
			fault: func(good *openai.Responses) recovering {
				return recovering{recover: func(ctx context.Context, operation string, emit func(string) error) (provider.Answer, error) {
					a, err := good.Recover(ctx, operation, emit)
					var e *onereply.CallError
					if errors.As(err, &e) {
						e.Final = false
					}
					return a, err
				}}
			},
			caught: []string{"recovery: never begun", "recovery: never found", "recovery: failed for an error of the server"},
			silent: []string{"recovery: it goes on"},
		},
		"takes a failed response for an answer": {
			fault: func(good *openai.Responses) recovering {
				return recovering{recover: func(ctx context.Context, operation string, emit func(string) error) (provider.Answer, error) {
					a, err := good.Recover(ctx, operation, emit)
					if err != nil {
						return provider.Answer{Text: "half", Model: "m", FinishReason: "stop"}, nil //nolint:nilerr // the planted fault
					}
					return a, nil
				}}
			},
			caught: []string{"recovery: failed for a quota", "recovery: the content filter", "recovery: cancelled at the provider", "recovery: a tool call"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			adapter := providertest.Adapter{
				Recovers: true,
				Provider: func() providertest.Provider { return simulator.New(simulator.Options{}) },
				New: func(baseURL string, transport http.RoundTripper) (provider.Model, error) {
					good, err := openai.NewResponses("simulated", openai.ResponsesOptions{
						BaseURL: baseURL, Transport: transport, Background: true,
						MissingFor: 1500 * time.Millisecond, QueuedFor: 1000 * time.Millisecond, QuietFor: 50 * time.Millisecond, PollEvery: 10 * time.Millisecond,
					})
					if err != nil {
						return nil, err
					}
					planted := test.fault(good)
					planted.Recoverer = good
					return planted, nil
				},
			}
			compare(t, providertest.Check(t, adapter, append(test.silent, test.caught...)...), test.caught, test.silent)
		})
	}
}

// lateCheckpoint holds a checkpoint back.
type lateCheckpoint struct {
	onereply.Call
	operation string
}

func (l *lateCheckpoint) Checkpoint(_ context.Context, operation string) error {
	l.operation = operation
	return nil
}

func (l *lateCheckpoint) save(ctx context.Context) error { return l.Call.Checkpoint(ctx, l.operation) }

// thinkAloud puts what was thought before an answer.
func thinkAloud(emit func(string) error) func(provider.Answer, error) (provider.Answer, error) {
	return func(a provider.Answer, err error) (provider.Answer, error) {
		if err != nil {
			return a, err
		}
		a.Text = "hm so " + a.Text
		return a, emit("hm so ")
	}
}
