package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/httpapi"
	"github.com/onereply/onereply/internal/settings"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/anthropic"
	"github.com/onereply/onereply/provider/demo"
	"github.com/onereply/onereply/provider/gate"
	"github.com/onereply/onereply/provider/openai"
	"github.com/onereply/onereply/render"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/tables"
	"github.com/onereply/onereply/web"
)

// service is everything joined.
type service struct {
	engine   *engine.Engine
	handler  http.Handler
	draining *atomic.Bool // set it when no more work should come
	close    func() error // once the engine has ended and nothing is served
}

// wire joins the adapters as the settings say. It is the only place that knows
// all of them. The first context bounds the opening; streams and waits end with
// the second.
func wire(ctx, serving context.Context, s settings.Serve, log *slog.Logger) (*service, error) {
	db, err := openDatabase(ctx, s, log)
	if err != nil {
		return nil, err
	}
	v, err := join(serving, db, s, log)
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	v.close = db.close
	return v, nil
}

func join(serving context.Context, db *database, s settings.Serve, log *slog.Logger) (*service, error) {
	rows, err := tables.NewChat(db.tables)
	if err != nil {
		return nil, fmt.Errorf("the chat's tables: %w", err)
	}
	who, err := gated(s)
	if err != nil {
		return nil, fmt.Errorf("--model %s: %w", s.Model, err)
	}
	ids := onereply.NewIDs()
	talk, err := chat.New(chat.Config{
		Store: rows, Model: who, IDs: ids, Policy: replyPolicy(s), MaxMessage: int(s.MaxMessage),
	})
	if err != nil {
		return nil, err
	}
	eng, err := engine.New(engineOptions(s, db.store, talk.Kind(), ids, log))
	if err != nil {
		return nil, err
	}
	talk.Bind(eng)
	draining := new(atomic.Bool)
	handler := httpapi.New(httpapi.Config{
		Engine: eng, Chat: talk,
		Host:   httpapi.LoopbackHost,
		Render: render.New().HTML,
		Ready: readiness(draining, func(ctx context.Context) error {
			_, err := db.store.Tasks(ctx, store.Query{IDs: []onereply.TaskID{"none"}}) // one look at an index
			return err
		}),
		Page: web.Handler(), MaxMessage: int(s.MaxMessage), Shutdown: serving, Logger: log,
	})
	return &service{engine: eng, handler: handler, draining: draining}, nil
}

// gated returns the model that answers, with one gate before it for the whole
// process.
func gated(s settings.Serve) (provider.Model, error) {
	m, err := model(s, s.Model, provider.NewTransport())
	if err != nil || !s.ModelGate || s.Model.Provider == settings.Demo {
		return m, err
	}
	return gate.New(m, gate.Options{
		Concurrency: s.ModelConcurrency, TokensPerMinute: s.ModelTokensPerMinute,
		Backoff: onereply.Backoff{Base: s.BackoffBase, Max: s.BackoffMax}, Draw: rand.Int64N,
	})
}

// model returns the model that the settings name.
func model(s settings.Serve, m settings.Model, transport http.RoundTripper) (provider.Model, error) {
	switch m.Provider {
	case settings.OpenAI:
		return openai.NewResponses(m.Name, openai.ResponsesOptions{
			BaseURL: m.BaseURL, APIKey: m.APIKey, Transport: transport, Background: s.OpenAIBackground,
			// An attempt must be able to find out that nothing is to be found.
			MissingFor: min(time.Minute, s.CallTimeout/2), QueuedFor: min(2*time.Minute, s.CallTimeout/2),
		})
	case settings.Anthropic:
		return anthropic.New(m.Name, anthropic.Options{
			BaseURL: m.BaseURL, APIKey: m.APIKey, Transport: transport, MaxTokens: s.AnthropicMaxTokens,
		})
	case settings.Compatible:
		return openai.NewCompatible(m.Name, m.BaseURL, m.APIKey, transport)
	}
	return demo.New(s.DemoDelay), nil
}

func replyPolicy(s settings.Serve) onereply.Policy {
	return onereply.Policy{
		MaxAttempts: s.MaxAttempts, MaxCalls: s.MaxCalls, MaxElapsed: s.MaxElapsed,
		OnUnknown: onereply.UnknownPolicy(s.OnUnknownOutcome), CallTimeout: s.CallTimeout,
		Backoff: onereply.Backoff{Base: s.BackoffBase, Max: s.BackoffMax},
	}
}

func engineOptions(s settings.Serve, db store.Store, kind onereply.Kind, ids *onereply.IDs, log *slog.Logger) engine.Options {
	o := engine.Options{
		Store: wrapStore(db), Kinds: []onereply.Kind{kind},
		Workers: s.Workers, Lease: s.Lease, Renew: s.Renew, Sweep: s.Sweep, Drain: s.Drain,
		KeyRetention: s.KeyRetention, TaskRetention: s.TaskRetention,
		Logger: log, IDs: ids,
	}
	if !s.Roles.Work {
		o.Workers = -1
	}
	if !s.Roles.Sweep {
		o.Sweep = -1
	}
	if s.Drain == 0 {
		o.Drain = -time.Nanosecond // zero would be the default
	}
	return o
}
