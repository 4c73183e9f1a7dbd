package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/provider"
)

// rows is the part of a store that the tests here need; the rest is not there.
// The whole of it is tested on a real database in store/tables.
type rows struct {
	chat.Store
	history  []chat.Turn
	messages map[string]chat.Message
}

func (r *rows) History(context.Context, string, string) ([]chat.Turn, error) { return r.history, nil }

func (r *rows) Conversation(_ context.Context, scope, id string) (chat.Conversation, error) {
	if scope != "s" || id != "c" {
		return chat.Conversation{}, onereply.ErrNotFound
	}
	return chat.Conversation{ID: id}, nil
}

func (r *rows) Message(_ context.Context, _, id string) (chat.Message, error) {
	m, ok := r.messages[id]
	if !ok && r.messages != nil {
		return m, onereply.ErrNotFound
	}
	return m, nil
}

// desk takes submissions and answers as it is told.
type desk struct {
	onereply.Submitter
	got    []onereply.Submission
	answer func(onereply.Submission) (onereply.Submitted, error)
}

func (d *desk) Submit(_ context.Context, s onereply.Submission) (onereply.Submitted, error) {
	d.got = append(d.got, s)
	if d.answer != nil {
		return d.answer(s)
	}
	return onereply.Submitted{Created: true, Task: onereply.Task{
		ID: "t1", Scope: s.Scope, Kind: s.Kind, Input: s.Input, Status: onereply.StatusQueued,
		CreatedAt: time.Date(2026, 12, 1, 10, 0, 0, 1_500_000, time.FixedZone("", 3600)),
	}}, nil
}

// model answers by script.
type model struct {
	start func(context.Context, onereply.Call, provider.Request, func(string) error) (provider.Answer, error)
}

func (*model) Name() string { return "scripted" }

func (m *model) Start(ctx context.Context, c onereply.Call, r provider.Request, emit func(string) error) (provider.Answer, error) {
	return m.start(ctx, c, r, emit)
}

// recoverer is a model whose operations can be looked up.
type recoverer struct {
	model
	recover   func(context.Context, string, func(string) error) (provider.Answer, error)
	cancelled []string
	cancelErr error
}

func (r *recoverer) Recover(ctx context.Context, operation string, emit func(string) error) (provider.Answer, error) {
	return r.recover(ctx, operation, emit)
}

func (r *recoverer) Cancel(ctx context.Context, operation string) error {
	if err := ctx.Err(); err != nil {
		return err // it could not leave
	}
	r.cancelled = append(r.cancelled, operation)
	return r.cancelErr
}

// attempt records what work does with it.
type attempt struct {
	open     *onereply.OpenCall
	input    chat.Input
	calls    int
	draft    strings.Builder
	draftErr error
	resolved []onereply.Resolution
	callErr  error // what the last call ended with
	call     call
}

func (a *attempt) Assignment() onereply.Assignment {
	raw, err := json.Marshal(a.input)
	if err != nil {
		panic(err)
	}
	return onereply.Assignment{Task: onereply.Task{ID: "t1", Scope: "s"}, Input: raw, OpenCall: a.open}
}

func (a *attempt) Call(ctx context.Context, send func(context.Context, onereply.Call) error) error {
	a.calls++
	a.callErr = send(ctx, &a.call)
	return a.callErr
}

func (a *attempt) Resolve(_ context.Context, r onereply.Resolution) error {
	a.resolved = append(a.resolved, r)
	return nil
}

// classes are those of what was resolved; nil when nothing was.
func (a *attempt) classes() (all []onereply.Class) {
	for _, r := range a.resolved {
		all = append(all, r.Class)
	}
	return all
}

func (a *attempt) Draft(_ context.Context, delta string) error {
	a.draft.WriteString(delta)
	return a.draftErr
}

func (a *attempt) Progress(context.Context, []byte) error { return nil }

type call struct {
	usage      onereply.Usage
	checkpoint string
}

func (c *call) Send() error { return nil }
func (c *call) Checkpoint(_ context.Context, operation string) error {
	c.checkpoint = operation
	return nil
}
func (c *call) Observe(onereply.Observation) {}
func (c *call) Used(u onereply.Usage)        { c.usage = u }

// run works on an attempt and reads the candidate.
func run(t *testing.T, ctx context.Context, c chat.Config, a *attempt) (chat.Response, error) {
	t.Helper()
	if c.Store == nil {
		c.Store = &rows{}
	}
	s, err := chat.New(c)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.Kind().Work(ctx, a)
	if err != nil {
		return chat.Response{}, err
	}
	var out chat.Response
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// class is the class of an error of work, empty where it has none.
func class(err error) onereply.Class {
	var e *onereply.CallError
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}
