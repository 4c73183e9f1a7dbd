package httpapi_test

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// model is a scripted provider that counts what it is asked.
type model struct {
	calls   atomic.Int64
	started chan struct{} // one for each call that begins, as far as anyone looks
	hold    chan struct{} // a call waits until it is closed; nil: it does not
	step    chan struct{} // each word waits for one; nil: it does not
	stopped chan struct{} // one for each call that its context ended, as far as anyone looks
	words   []string
	fail    error
}

func newModel() *model {
	return &model{started: make(chan struct{}, 1000), stopped: make(chan struct{}, 1000), words: []string{"one ", "good ", "answer"}}
}

func (m *model) Name() string { return "scripted" }

func (m *model) Start(ctx context.Context, call onereply.Call, _ provider.Request, emit func(string) error) (provider.Answer, error) {
	if err := call.Send(); err != nil {
		return provider.Answer{}, err
	}
	m.calls.Add(1)
	tell(m.started)
	if err := m.await(ctx, m.hold); err != nil {
		return provider.Answer{}, err
	}
	if m.fail != nil {
		return provider.Answer{}, m.fail
	}
	for _, word := range m.words {
		if err := m.await(ctx, m.step); err != nil {
			return provider.Answer{}, err
		}
		if err := emit(word); err != nil {
			return provider.Answer{}, err
		}
	}
	return provider.Answer{Text: strings.Join(m.words, ""), Model: "scripted-1", FinishReason: "stop", Usage: onereply.Usage{InputTokens: 3, OutputTokens: 2}}, nil
}

// await waits for the script to go on, or for the call to be stopped.
func (m *model) await(ctx context.Context, goOn <-chan struct{}) error {
	if goOn == nil {
		return nil
	}
	select {
	case <-goOn:
		return nil
	case <-ctx.Done():
		tell(m.stopped)
		return context.Cause(ctx)
	}
}

func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
