package providertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// recovery is one way in which a call goes on after its worker is lost: it is
// started, its caller leaves once the operation is saved, and another worker
// recovers it.
type recovery struct {
	name   string
	prompt string
	wait   bool  // the caller leaves after the first delta; else with the checkpoint
	cancel bool  // the task is cancelled: the provider is asked to stop
	stop   error // the cause with which the recovery is ended after its first delta

	class     onereply.Class // of the recovery; empty: answered
	code      string
	final     bool
	cancels   bool // the provider was asked to stop
	may       bool // it may be asked to, or have ended before that
	text      string
	truncated bool
	usage     onereply.Usage
}

// recoveries are what a provider that can be asked afterwards may tell.
func recoveries() []recovery {
	const unknown, permanent = onereply.ClassUnknown, onereply.ClassRefusedPermanent
	return []recovery{
		{name: "recovery: it goes on", prompt: "[[say one two three]] [[slow 20ms]] [[usage 3 4]] why?", wait: true, text: "one two three", usage: onereply.Usage{InputTokens: 3, OutputTokens: 4}},
		{name: "recovery: it has ended", prompt: "[[say one two three]] [[usage 3 4]] why?", text: "one two three", usage: onereply.Usage{InputTokens: 3, OutputTokens: 4}},
		{name: "recovery: it has not begun", prompt: "[[delay 60ms]] [[say one two three]] why?", text: "one two three"},
		{name: "recovery: after thinking", prompt: "[[delay 20ms]] [[think hm so]] [[say yes]] why?", text: "yes"},
		{name: "recovery: cut by a limit of tokens", prompt: "[[say one two]] [[length]] why?", text: "one two", truncated: true},
		{name: "recovery: not found at first", prompt: "[[say one two three]] [[missing 3]] why?", text: "one two three"},
		{name: "recovery: it cannot be streamed", prompt: "[[say one two three]] [[slow 20ms]] [[no-resume]] why?", wait: true, text: "one two three"},

		{name: "recovery: never found", prompt: "[[missing]] why?", class: unknown, code: onereply.CodeProviderUnavailable, final: true, cancels: true},
		{name: "recovery: never begun", prompt: "[[queued]] why?", class: unknown, code: onereply.CodeProviderUnavailable, final: true, cancels: true},
		{name: "recovery: failed for a quota", prompt: "[[failed 1 insufficient_quota]] why?", class: permanent, code: onereply.CodeInsufficientQuota},
		{name: "recovery: failed for a rate limit, before output", prompt: "[[failed 0 rate_limit_exceeded]] why?", class: onereply.ClassRefusedTemporary, code: onereply.CodeRateLimited},
		{name: "recovery: failed for an error of the server", prompt: "[[failed 1 server_error]] why?", class: unknown, code: onereply.CodeProviderUnavailable, final: true},
		{name: "recovery: cancelled at the provider", prompt: "[[say one two]] [[cancelled 1]] why?", class: unknown, code: onereply.CodeProviderUnavailable, final: true},
		{name: "recovery: the content filter", prompt: "[[say one two]] [[filter]] why?", class: permanent, code: onereply.CodeContentFiltered},
		{name: "recovery: a tool call", prompt: "[[toolcall]] why?", class: permanent, code: onereply.CodeToolCalls, may: true},
		{name: "recovery: nothing said", prompt: "[[empty]] why?", class: onereply.ClassUseless, code: onereply.CodeEmptyAnswer},
		{name: "recovery: no answer in time", prompt: "[[say one two three]] [[hang after 2]] why?", wait: true, stop: onereply.ErrCallTimeout, class: unknown, code: onereply.CodeTimeout},
		{name: "recovery: drained again", prompt: "[[say one two three]] [[hang after 2]] why?", wait: true, stop: onereply.ErrDraining, class: onereply.ClassInterrupted, code: "interrupted"},
		{name: "recovery: cancelled by its task", prompt: "[[say one two three]] [[hang after 2]] why?", wait: true, cancel: true, class: unknown, code: onereply.CodeProviderUnavailable, final: true, cancels: true},
	}
}

// lost is a worker that is stopped in its tracks in the middle of a call.
type lost struct {
	Call
	early  bool          // it stops as soon as the operation is saved
	saved  chan struct{} // closed when it has stopped
	thaw   chan struct{} // closed when it may go on
	frozen sync.Once
}

func (l *lost) freeze() {
	l.frozen.Do(func() {
		close(l.saved)
		<-l.thaw
	})
}

// Checkpoint keeps the operation id.
func (l *lost) Checkpoint(ctx context.Context, operation string) error {
	err := l.Call.Checkpoint(ctx, operation)
	if l.early {
		l.freeze()
	}
	return err
}

func (a Adapter) recover(t *testing.T, r recovery, http2 bool) (wrong []string) {
	t.Helper()
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	scripted, model, end, err := a.open(t, "", http2)
	defer end()
	recoverer, ok := model.(provider.Recoverer)
	if err != nil || !ok {
		return []string{fmt.Sprintf("no recoverer: %v", err)}
	}
	operation, thaw := begin(t.Context(), recoverer, r)
	defer thaw()
	if operation == "" {
		return []string{"no operation was saved before the first text"}
	}
	if r.cancel {
		if err := recoverer.Cancel(t.Context(), operation); err != nil {
			complain("cancelling: %v", err)
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var said strings.Builder
	answer, err := recoverer.Recover(ctx, operation, func(delta string) error {
		said.WriteString(delta)
		if r.stop != nil {
			stop(r.stop)
		}
		return nil
	})
	outcome := onereply.Classify(err, onereply.Observation{}, context.Cause(ctx), time.Now())
	if n := scripted.requests.Load(); n != 1 {
		complain("the provider got %d requests that start work, want 1", n)
	}
	if cancelled := scripted.cancels.Load() > 0; cancelled != r.cancels && !r.may {
		complain("the provider was asked to stop: %v, want %v", cancelled, r.cancels)
	}
	if r.class == "" {
		got := result{answer: answer, deltas: said.String(), err: err, call: &Call{}}
		got.call.Used(answer.Usage)
		return append(wrong, judgeAnswer(row{text: r.text, truncated: r.truncated, usage: r.usage}, got)...)
	}
	switch {
	case err == nil:
		complain("gave the answer %.40q for an operation that ended as %s", answer.Text, r.class)
	case answer != (provider.Answer{}):
		complain("gave part of an answer beside an error: %.40q", answer.Text)
	case outcome.Class != r.class || outcome.Code != r.code || outcome.Final != r.final && r.class == onereply.ClassUnknown:
		complain("is %s (%s), final %v, want %s (%s), %v: %v", outcome.Class, outcome.Code, outcome.Final, r.class, r.code, r.final, err)
	}
	return wrong
}

// begin makes the call whose worker is lost and returns its operation, and what
// lets the worker go on to find that its lease is lost.
func begin(ctx context.Context, model provider.Recoverer, r recovery) (operation string, thaw func()) {
	ctx, leave := context.WithCancelCause(ctx)
	call := &lost{early: !r.wait, saved: make(chan struct{}), thaw: make(chan struct{})}
	var working sync.WaitGroup
	working.Go(func() {
		_, _ = model.Start(ctx, call, request(r.prompt), func(string) error { // nobody hears how a lost worker ends
			call.freeze()
			return nil
		})
		call.freeze() // it may have ended without a word
	})
	thaw = func() {
		leave(onereply.ErrLeaseLost)
		close(call.thaw)
		working.Wait()
	}
	<-call.saved
	if saved := call.Operations(); len(saved) == 1 {
		operation = saved[0]
	}
	return operation, thaw
}
