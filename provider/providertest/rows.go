package providertest

import (
	"time"

	"github.com/onereply/onereply"
)

// row is one way in which a call can go, told to the scripted provider by the
// markers of provider/simulator, and what an adapter must make of it.
type row struct {
	name   string
	prompt string
	place  place // where the call goes; the scripted provider by default
	silent error // the cause with which the call is ended once the provider has the request
	stop   error // the cause with which the call is ended after its first delta

	class     onereply.Class // empty: answered
	code      string
	text      string // of the answer
	truncated bool
	after     time.Duration // the provider's wish to wait
	usage     onereply.Usage

	// recovered is the answer that an adapter gives which looks a call up after
	// its line broke.
	recovered string
}

// place is what a call meets instead of the scripted provider.
type place string

const (
	nobody   place = "nobody listens"
	stranger place = "a server whose certificate is not trusted"
	mute     place = "a server that takes the connection and closes it"
)

// rows are the table of "What a failure means", as far as an adapter's wire can
// show it, and the answers.
func rows() []row {
	return append(answers(), failures()...)
}

func answers() []row {
	return []row{
		{name: "an answer", prompt: "[[say one two three]] why?", text: "one two three"},
		{name: "an answer in another script", prompt: "[[say 東京 が答えです 🎉]] why?", text: "東京 が答えです 🎉"},
		{name: "an answer of one word, slowly", prompt: "[[say yes]] [[slow 1ms]] why?", text: "yes"},
		{name: "an answer with its usage", prompt: "[[say one two]] [[usage 11 22]] why?", text: "one two", usage: onereply.Usage{InputTokens: 11, OutputTokens: 22}},
		{name: "an answer after thinking", prompt: "[[think hm so]] [[say yes]] why?", text: "yes"},
		{name: "an answer with a NUL in it", prompt: "[[nul]] why?", text: "beforeafter"},
		{name: "an answer cut by a limit of tokens", prompt: "[[say one two]] [[length]] why?", text: "one two", truncated: true},
		{name: "an answer of 1 MiB", prompt: "[[big 1]] why?", text: big(1)},
	}
}

func failures() []row {
	const (
		unknown   = onereply.ClassUnknown
		useless   = onereply.ClassUseless
		permanent = onereply.ClassRefusedPermanent
		temporary = onereply.ClassRefusedTemporary
	)
	return []row{
		{name: "nobody listens", place: nobody, class: onereply.ClassNotSent, code: onereply.CodeProviderUnavailable},
		{name: "the TLS handshake fails", place: stranger, class: onereply.ClassNotSent, code: onereply.CodeProviderUnavailable},
		{name: "the connection is taken and closed", place: mute, class: unknown, code: onereply.CodeProviderUnavailable},

		{name: "429", prompt: "[[status 429]] why?", class: temporary, code: onereply.CodeRateLimited},
		{name: "429 with a wish", prompt: "[[status 429 rate_limit_exceeded]] [[retry-after 7]] why?", class: temporary, code: onereply.CodeRateLimited, after: 7 * time.Second},
		{name: "429 for a quota", prompt: "[[status 429 insufficient_quota]] why?", class: permanent, code: onereply.CodeInsufficientQuota},
		{name: "400", prompt: "[[status 400]] why?", class: permanent, code: onereply.CodeProviderRejected},
		{name: "400 for the context", prompt: "[[status 400 context_length_exceeded]] why?", class: permanent, code: onereply.CodeContextTooLong},
		{name: "400 for the filter", prompt: "[[status 400 content_policy_violation]] why?", class: permanent, code: onereply.CodeContentFiltered},
		{name: "401", prompt: "[[status 401]] why?", class: permanent, code: onereply.CodeUnauthenticated},
		{name: "402", prompt: "[[status 402]] why?", class: permanent, code: onereply.CodeInsufficientQuota},
		{name: "403", prompt: "[[status 403]] why?", class: permanent, code: onereply.CodeUnauthenticated},
		{name: "404", prompt: "[[status 404]] why?", class: permanent, code: onereply.CodeProviderRejected},
		{name: "413", prompt: "[[status 413]] why?", class: permanent, code: onereply.CodeContextTooLong},
		{name: "422", prompt: "[[status 422]] why?", class: permanent, code: onereply.CodeProviderRejected},
		{name: "a redirect", prompt: "[[redirect 307]] why?", class: permanent, code: onereply.CodeProviderRejected},
		{name: "the content filter, with nothing said", prompt: "[[empty]] [[filter]] why?", class: permanent, code: onereply.CodeContentFiltered},
		{name: "the content filter, in the middle", prompt: "[[say one two]] [[filter]] why?", class: permanent, code: onereply.CodeContentFiltered},
		{name: "the model declines", prompt: "[[refusal I cannot]] [[empty]] why?", class: permanent, code: onereply.CodeContentFiltered},
		{name: "a tool call", prompt: "[[toolcall]] why?", class: permanent, code: onereply.CodeToolCalls},
		{name: "a tool call with cut arguments", prompt: "[[toolcall cut]] why?", class: permanent, code: onereply.CodeToolCalls},

		{name: "408", prompt: "[[status 408]] why?", class: unknown, code: onereply.CodeProviderUnavailable},
		{name: "409", prompt: "[[status 409]] why?", class: unknown, code: onereply.CodeProviderUnavailable},
		{name: "500", prompt: "[[status 500]] why?", class: unknown, code: onereply.CodeProviderUnavailable},
		{name: "502", prompt: "[[status 502]] why?", class: unknown, code: onereply.CodeProviderUnavailable},
		{name: "503 with a wish", prompt: "[[status 503]] [[retry-after 3]] why?", class: unknown, code: onereply.CodeProviderUnavailable, after: 3 * time.Second},
		{name: "504", prompt: "[[status 504]] why?", class: unknown, code: onereply.CodeProviderUnavailable},
		{name: "529", prompt: "[[status 529]] why?", class: unknown, code: onereply.CodeProviderOverloaded},
		{name: "cut before the first byte", prompt: "[[cut before]] why?", class: unknown, code: onereply.CodeProviderUnavailable},
		{name: "reset before the first byte", prompt: "[[reset before]] why?", class: unknown, code: onereply.CodeProviderUnavailable},
		{name: "cut after the headers", prompt: "[[cut after 0]] why?", class: unknown, code: onereply.CodeProviderUnavailable, recovered: "This is the simulator's scripted answer to: why?"},
		{name: "cut in the middle", prompt: "[[say one two three]] [[cut after 2]] why?", class: unknown, code: onereply.CodeProviderUnavailable, recovered: "one two three"},
		{name: "reset in the middle", prompt: "[[say one two three]] [[slow 50ms]] [[reset after 2]] why?", class: unknown, code: onereply.CodeProviderUnavailable, recovered: "one two three"}, // slow: a reset throws away what was not read yet, the id among it
		{name: "cut after the last word", prompt: "[[say one two three]] [[cut after 3]] why?", class: unknown, code: onereply.CodeProviderUnavailable, recovered: "one two three"},
		{name: "an end without an end mark", prompt: "[[say one two three]] [[no-end]] why?", class: unknown, code: onereply.CodeProviderUnavailable, recovered: "one two three"},
		{name: "an end without an end mark, in the middle", prompt: "[[say one two three]] [[no-end 1]] why?", class: unknown, code: onereply.CodeProviderUnavailable, recovered: "one two three"},
		{name: "an end without a word", prompt: "[[no-end 0]] why?", class: unknown, code: onereply.CodeProviderUnavailable, recovered: "This is the simulator's scripted answer to: why?"},
		{name: "no answer in time", prompt: "[[hang]] why?", silent: onereply.ErrCallTimeout, class: unknown, code: onereply.CodeTimeout},
		{name: "silence in the middle", prompt: "[[say one two three]] [[hang after 2]] why?", stop: onereply.ErrCallTimeout, class: unknown, code: onereply.CodeTimeout},
		{name: "an overload in the stream, before output", prompt: "[[error-after 0 overloaded_error]] why?", class: unknown, code: onereply.CodeProviderOverloaded},
		{name: "an overload in the stream, after output", prompt: "[[say one two three]] [[error-after 2 overloaded_error]] why?", class: unknown, code: onereply.CodeProviderOverloaded},
		{name: "a rate limit in the stream, before output", prompt: "[[error-after 0 rate_limit_exceeded]] why?", class: temporary, code: onereply.CodeRateLimited},
		{name: "a rate limit in the stream, after output", prompt: "[[say one two three]] [[error-after 2 rate_limit_exceeded]] why?", class: unknown, code: onereply.CodeRateLimited},
		{name: "a quota in the stream", prompt: "[[say one two three]] [[error-after 2 insufficient_quota]] why?", class: permanent, code: onereply.CodeInsufficientQuota},

		{name: "nothing said", prompt: "[[empty]] why?", class: useless, code: onereply.CodeEmptyAnswer},
		{name: "only white space", prompt: "[[blank]] why?", class: useless, code: onereply.CodeEmptyAnswer},
		{name: "only thinking", prompt: "[[thinking]] why?", class: useless, code: onereply.CodeEmptyAnswer},
		{name: "only thinking, up to the limit", prompt: "[[thinking]] [[length]] why?", class: useless, code: onereply.CodeEmptyAnswer},
		{name: "a web page", prompt: "[[html]] why?", class: useless, code: onereply.CodeBadProviderResponse},
		{name: "an error object with 200", prompt: `[[json {"error":{"message":"m","type":"server_error"}}]] why?`, class: useless, code: onereply.CodeBadProviderResponse},
		{name: "an empty object with 200", prompt: "[[json {}]] why?", class: useless, code: onereply.CodeBadProviderResponse},
		{name: "an event that is no JSON", prompt: "[[say one two three]] [[broken-json 2]] why?", class: useless, code: onereply.CodeBadProviderResponse, recovered: "one two three"},
		{name: "an answer of 10 MiB", prompt: "[[big 10]] why?", class: useless, code: onereply.CodeBadProviderResponse},

		{name: "cancelled before the answer", prompt: "[[hang]] why?", silent: onereply.ErrCancelled, class: onereply.ClassInterrupted, code: "interrupted"},
		{name: "cancelled in the middle", prompt: "[[say one two three]] [[hang after 2]] why?", stop: onereply.ErrCancelled, class: onereply.ClassInterrupted, code: "interrupted"},
		{name: "drained in the middle", prompt: "[[say one two three]] [[hang after 2]] why?", stop: onereply.ErrDraining, class: onereply.ClassInterrupted, code: "interrupted"},
	}
}
