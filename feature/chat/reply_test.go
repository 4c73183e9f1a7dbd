package chat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/provider"
)

// says answers with the pieces, streamed.
func says(a provider.Answer, pieces ...string) *model {
	return &model{start: func(_ context.Context, _ onereply.Call, _ provider.Request, emit func(string) error) (provider.Answer, error) {
		for _, p := range pieces {
			if err := emit(p); err != nil {
				return provider.Answer{}, err
			}
		}
		return a, nil
	}}
}

func TestAnAnswerBecomesTheCandidate(t *testing.T) {
	t.Parallel()
	a := &attempt{input: chat.Input{Conversation: "c", Message: "m", Text: "hi"}}
	out, err := run(t, t.Context(), chat.Config{Model: says(provider.Answer{
		Text: "Hello\x00 there", Model: "m-1", FinishReason: "length", Truncated: true, Usage: onereply.Usage{InputTokens: 3, OutputTokens: 2},
	}, "Hello", "\x00", " the\x00re")}, a)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.MessageID) != 36 {
		t.Errorf("message id %q", out.MessageID)
	}
	out.MessageID = ""
	want := chat.Response{
		Text: "Hello there", Model: "m-1", FinishReason: "length", Truncated: true,
		Citations: []chat.Citation{}, Usage: onereply.Usage{InputTokens: 3, OutputTokens: 2},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	if a.draft.String() != "Hello there" || a.calls != 1 || a.call.usage != want.Usage {
		t.Errorf("draft %q, %d calls, usage %v", a.draft.String(), a.calls, a.call.usage)
	}
}

func TestEachAttemptMintsAMessageIDOfItsOwn(t *testing.T) {
	t.Parallel()
	s, err := chat.New(chat.Config{Store: &rows{}, Model: says(provider.Answer{Text: "a"})})
	if err != nil {
		t.Fatal(err)
	}
	first, err1 := s.Kind().Work(t.Context(), &attempt{})
	second, err2 := s.Kind().Work(t.Context(), &attempt{})
	if err1 != nil || err2 != nil || string(first) == string(second) {
		t.Errorf("%s and %s, %v %v", first, second, err1, err2)
	}
}

func TestNoAnswerIsUselessAndItsCallIsClosedAsThat(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \n\t", "\x00", "\u00a0\x00 "} {
		a := &attempt{}
		_, err := run(t, t.Context(), chat.Config{Model: says(provider.Answer{Text: text, Usage: onereply.Usage{OutputTokens: 9}})}, a)
		var e *onereply.CallError
		if !errors.As(err, &e) || e.Class != onereply.ClassUseless || e.Code != onereply.CodeEmptyAnswer {
			t.Errorf("%q: %v", text, err)
		}
		if class(a.callErr) != onereply.ClassUseless || a.call.usage.OutputTokens != 9 {
			t.Errorf("%q: the call ended with %v and %v", text, a.callErr, a.call.usage)
		}
	}
}

func TestTheModelIsAskedWithTheConversationSoFar(t *testing.T) {
	t.Parallel()
	turns := []chat.Turn{{"q1", "a1"}, {"q2", "a2"}}
	msg := func(r provider.Role, text string) provider.Message { return provider.Message{Role: r, Text: text} }
	for _, c := range []struct {
		name   string
		system string
		turns  []chat.Turn
		want   []provider.Message
	}{
		{"a first question goes alone", "", nil, []provider.Message{msg(provider.User, "now")}},
		{"the system text comes first", "be kind", nil, []provider.Message{msg(provider.System, "be kind"), msg(provider.User, "now")}},
		{"answered questions alternate", "be kind", turns, []provider.Message{
			msg(provider.System, "be kind"), msg(provider.User, "q1"), msg(provider.Assistant, "a1"),
			msg(provider.User, "q2"), msg(provider.Assistant, "a2"), msg(provider.User, "now"),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []provider.Message
			m := &model{start: func(_ context.Context, _ onereply.Call, r provider.Request, _ func(string) error) (provider.Answer, error) {
				got = r.Messages
				return provider.Answer{Text: "ok"}, nil
			}}
			out, err := run(t, t.Context(), chat.Config{Store: &rows{history: c.turns}, Model: m, System: c.system}, &attempt{input: chat.Input{Text: "now"}})
			if err != nil || out.Model != "scripted" {
				t.Fatal(out, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type retriever struct {
	passages []chat.Passage
	err      error
}

func (r retriever) Retrieve(context.Context, string, string, []chat.DocumentVersion) ([]chat.Passage, error) {
	return r.passages, r.err
}

func TestPassagesAreToldAndTheOnesReferredToAreCited(t *testing.T) {
	t.Parallel()
	var asked string
	m := &model{start: func(_ context.Context, _ onereply.Call, r provider.Request, _ func(string) error) (provider.Answer, error) {
		asked = r.Messages[0].Text
		return provider.Answer{Text: "So [2], and [2] again; not [3] or [0]; [1]."}, nil
	}}
	found := retriever{passages: []chat.Passage{{"d", 4, 7, "seven"}, {"e", 1, 0, "zero"}}}
	a := &attempt{input: chat.Input{Text: "why?", Documents: []chat.DocumentVersion{{"d", 4}, {"e", 1}}}}
	out, err := run(t, t.Context(), chat.Config{Model: m, Retriever: found}, a)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(asked, "[1] seven") || !strings.Contains(asked, "[2] zero") || !strings.HasSuffix(asked, "Question: why?") {
		t.Errorf("asked %q", asked)
	}
	if diff := cmp.Diff([]chat.Citation{{"e", 1, 0}, {"d", 4, 7}}, out.Citations); diff != "" {
		t.Error(diff)
	}
	if _, err := run(t, t.Context(), chat.Config{Model: m, Retriever: retriever{err: errors.New("index away")}}, a); err == nil || a.calls != 1 {
		t.Errorf("a failed search: %v after %d calls, want an error before the second call", err, a.calls)
	}
}

func TestAnOpenOperationIsLookedUpBeforeAnythingIsPaidAgain(t *testing.T) {
	t.Parallel()
	cause := errors.New("told")
	for _, c := range []struct {
		name     string
		answer   provider.Answer
		err      error
		class    onereply.Class // of work's error; empty: none
		resolved []onereply.Class
	}{
		{"it had answered", provider.Answer{Text: "found"}, nil, "", []onereply.Class{onereply.ClassAnswered}},
		{"it had answered nothing", provider.Answer{Text: " "}, nil, onereply.ClassUseless, []onereply.Class{onereply.ClassUseless}},
		{"it had been refused for good", provider.Answer{}, onereply.RefusedPermanent(onereply.CodeContentFiltered, cause), onereply.ClassRefusedPermanent, []onereply.Class{onereply.ClassRefusedPermanent}},
		{"it had failed for now", provider.Answer{}, onereply.RefusedTemporary(onereply.CodeRateLimited, 0, cause), onereply.ClassRefusedTemporary, []onereply.Class{onereply.ClassRefusedTemporary}},
		{"it is still not known", provider.Answer{}, onereply.UnknownOutcome(onereply.CodeProviderUnavailable, cause), onereply.ClassUnknown, nil},
		{"it ended without an answer", provider.Answer{}, &onereply.CallError{Class: onereply.ClassUnknown, Code: onereply.CodeProviderOverloaded, Final: true}, onereply.ClassUnknown, []onereply.Class{onereply.ClassUnknown}},
		{"the lookup broke off", provider.Answer{}, cause, onereply.ClassUnknown, nil},
		{"the lookup did not leave", provider.Answer{}, onereply.NotSent(onereply.CodeProviderUnavailable, cause), onereply.ClassNotSent, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &recoverer{recover: func(_ context.Context, operation string, emit func(string) error) (provider.Answer, error) {
				if operation != "op-1" {
					t.Errorf("looked up %q", operation)
				}
				return c.answer, errors.Join(emit("fo"), emit("und"), c.err)
			}}
			r.start = func(context.Context, onereply.Call, provider.Request, func(string) error) (provider.Answer, error) {
				return provider.Answer{}, errors.New("started anew")
			}
			a := &attempt{open: &onereply.OpenCall{Number: 1, Operation: "op-1"}}
			out, err := run(t, t.Context(), chat.Config{Model: r}, a)
			if class(err) != c.class || (err == nil) != (c.class == "") {
				t.Errorf("ended with %v, want class %q", err, c.class)
			}
			if err == nil && out.Text != "found" {
				t.Errorf("response %+v", out)
			}
			if diff := cmp.Diff(c.resolved, a.classes()); diff != "" || a.calls != 0 || a.draft.String() != "found" {
				t.Errorf("%d calls, draft %q, resolved %s", a.calls, a.draft.String(), diff)
			}
		})
	}
}

func TestAnOpenCallThatCannotBeLookedUpIsLeftToTheCallItself(t *testing.T) {
	t.Parallel()
	r := &recoverer{}
	r.start = says(provider.Answer{Text: "again"}).start
	for name, c := range map[string]struct {
		model provider.Model
		open  *onereply.OpenCall
	}{
		"no operation was saved":         {r, &onereply.OpenCall{Number: 1}},
		"the provider knows no recovery": {says(provider.Answer{Text: "again"}), &onereply.OpenCall{Number: 1, Operation: "op-1"}},
	} {
		a := &attempt{open: c.open}
		if out, err := run(t, t.Context(), chat.Config{Model: c.model}, a); err != nil || out.Text != "again" || a.calls != 1 || a.resolved != nil {
			t.Errorf("%s: %+v %v, %d calls, resolved %v", name, out, err, a.calls, a.resolved)
		}
	}
}

func TestACancelledTaskStopsItsOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cause error
		want  []string
	}{
		{"a cancel is passed on", onereply.ErrCancelled, []string{"op-1"}},
		{"a drain leaves the operation to whoever takes over", onereply.ErrDraining, nil},
		{"a lost lease leaves it to whoever has taken over", onereply.ErrLeaseLost, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, open := range []*onereply.OpenCall{nil, {Number: 1, Operation: "op-1"}} {
				ctx, cancel := context.WithCancelCause(t.Context())
				refused := errors.New("cannot be stopped any more")
				r := &recoverer{cancelErr: refused}
				r.start = func(ctx context.Context, call onereply.Call, _ provider.Request, _ func(string) error) (provider.Answer, error) {
					err := call.Checkpoint(ctx, "op-1")
					cancel(c.cause)
					return provider.Answer{}, errors.Join(err, ctx.Err())
				}
				r.recover = func(ctx context.Context, _ string, _ func(string) error) (provider.Answer, error) {
					cancel(c.cause)
					return provider.Answer{}, ctx.Err()
				}
				a := &attempt{open: open}
				_, err := run(t, ctx, chat.Config{Model: r}, a)
				if diff := cmp.Diff(c.want, r.cancelled); diff != "" || a.resolved != nil {
					t.Errorf("open %v: stopped %s, resolved %v", open, diff, a.resolved)
				}
				if !errors.Is(err, context.Canceled) || errors.Is(err, refused) != (c.want != nil) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("open %v: %v", open, err)
				}
				if open == nil && a.call.checkpoint != "op-1" {
					t.Error("the checkpoint was not passed on")
				}
			}
		})
	}
}

func TestADraftThatIsRefusedEndsTheCall(t *testing.T) {
	t.Parallel()
	a := &attempt{draftErr: onereply.ErrFencedOut}
	if _, err := run(t, t.Context(), chat.Config{Model: says(provider.Answer{Text: "x"}, "x")}, a); !errors.Is(err, onereply.ErrFencedOut) {
		t.Error(err)
	}
}

// gated is a model with a gate before it.
type gated struct {
	provider.Model

	err  error
	left int
}

func (g *gated) Admit(context.Context, provider.Request) (func(), error) {
	return func() { g.left++ }, g.err
}

func TestWhatIsKeptBackAtTheGateIsNotCounted(t *testing.T) {
	t.Parallel()
	kept := onereply.RefusedTemporary(onereply.CodeRateLimited, time.Minute, errors.New("kept back"))
	for name, refusal := range map[string]error{"kept back": kept, "let in": nil} {
		g := &gated{Model: says(provider.Answer{Text: "hello"}), err: refusal}
		a := &attempt{}
		_, err := run(t, t.Context(), chat.Config{Model: g}, a)
		calls, left := 1, 1
		if refusal != nil {
			calls, left = 0, 0
		}
		if !errors.Is(err, refusal) || a.calls != calls || g.left != left {
			t.Errorf("%s: %v, %d calls counted, left %d times", name, err, a.calls, g.left)
		}
	}
}
