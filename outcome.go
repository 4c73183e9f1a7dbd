package onereply

import (
	"context"
	"errors"
	"net/textproto"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Class says what is known about a call that ended (P10).
type Class string

// The classes, from "nothing happened" to "we do not know".
const (
	// ClassAnswered: the provider answered in full.
	ClassAnswered Class = "answered"
	// ClassNotSent: nothing left this process; no connection was obtained.
	ClassNotSent Class = "not_sent"
	// ClassRefusedTemporary: the provider did not do it and asks to come back.
	ClassRefusedTemporary Class = "refused_temporary"
	// ClassRefusedPermanent: the same inputs will never succeed.
	ClassRefusedPermanent Class = "refused_permanent"
	// ClassUnknown: it may have run and may have charged.
	ClassUnknown Class = "unknown"
	// ClassUseless: it ran and what came is no answer.
	ClassUseless Class = "useless"
	// ClassInterrupted: this process stopped it (shutdown, lease lost, cancel).
	ClassInterrupted Class = "interrupted"
)

// CallError is a classified outcome. Work returns one to say what happened in
// terms the engine acts on; see the constructors.
type CallError struct {
	Class      Class
	Code       string        // stable, for users: "rate_limited", "provider_overloaded", …
	Message    string        // short, free of secrets; empty: none
	RetryAfter time.Duration // the provider's wish; zero: none
	Err        error

	// Final, with ClassUnknown: the call's operation will never be answered, or
	// can no longer be found. Looking it up again would tell nothing more, so
	// what follows is the policy's decision.
	Final bool
	// Usage is what the provider said the failure cost, where that was learned by
	// a lookup; a call reports its own through Used.
	Usage Usage
}

// Error gives the code, the message and the cause.
func (e *CallError) Error() string {
	s := string(e.Class)
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Err }

// Failure is the part of the outcome that is shown to people.
func (e *CallError) Failure() *Failure {
	f := &Failure{Code: e.Code, Message: e.Message}
	if f.Code == "" {
		f.Code = string(e.Class)
	}
	if f.Message == "" {
		f.Message = defaultMessages[f.Code]
	}
	return f
}

// NotSent says that nothing was sent, so the attempt may simply be repeated
// with backoff. It is also the class for a failure of the program's own before
// any call.
func NotSent(code string, err error) error {
	return &CallError{Class: ClassNotSent, Code: code, Err: err}
}

// RefusedTemporary says that the provider did not do it and asks to come back,
// after the given time where it named one.
func RefusedTemporary(code string, after time.Duration, err error) error {
	return &CallError{Class: ClassRefusedTemporary, Code: code, RetryAfter: after, Err: err}
}

// RefusedPermanent says that the same inputs will never succeed. The task fails
// at once with this code.
func RefusedPermanent(code string, err error) error {
	return &CallError{Class: ClassRefusedPermanent, Code: code, Err: err}
}

// Useless says that the call ran and produced nothing that may be saved.
func Useless(code string, err error) error {
	return &CallError{Class: ClassUseless, Code: code, Err: err}
}

// UnknownOutcome says that the call may have run (P10).
func UnknownOutcome(code string, err error) error {
	return &CallError{Class: ClassUnknown, Code: code, Err: err}
}

// The codes of a reply's error.
const (
	CodeRateLimited         = "rate_limited"
	CodeProviderOverloaded  = "provider_overloaded"
	CodeProviderUnavailable = "provider_unavailable"
	CodeProviderRejected    = "provider_rejected"
	CodeBadProviderResponse = "bad_provider_response"
	CodeEmptyAnswer         = "empty_answer"
	CodeContentFiltered     = "content_filtered"
	CodeContextTooLong      = "context_too_long"
	CodeInsufficientQuota   = "insufficient_quota"
	CodeUnauthenticated     = "unauthenticated"
	CodeToolCalls           = "tool_calls_unsupported"
	CodeTimeout             = "timeout"
)

var defaultMessages = map[string]string{
	CodeRateLimited:         "the provider asked us to slow down",
	CodeProviderOverloaded:  "the provider is overloaded",
	CodeProviderUnavailable: "the provider could not be reached or broke off",
	CodeProviderRejected:    "the provider refused the request",
	CodeBadProviderResponse: "the provider's response made no sense",
	CodeEmptyAnswer:         "the provider gave an empty answer",
	CodeContentFiltered:     "the provider's content filter stopped the answer",
	CodeContextTooLong:      "the conversation is too long for this model",
	CodeInsufficientQuota:   "the account's quota or spend limit is used up",
	CodeUnauthenticated:     "the provider did not accept our credentials",
	CodeToolCalls:           "the model asked for a tool and this service runs none",
	CodeTimeout:             "the call took too long",
}

// Observation is what was seen on the wire during one call. provider.Client
// fills it under any SDK.
type Observation struct {
	Asked      bool   // a connection was asked for
	Connected  bool   // one was obtained: from here on the provider may have acted
	Requests   int    // physical requests that can start work
	Status     int    // of the response; 0: none came
	RetryAfter string // the header as received
	Code       string // the provider's own error code, where the body had one
	Type       string // the provider's wider kind of error beside the code
	Message    string // the provider's own words, shortened
	BodyErr    error  // reading the response body broke off
	HTML       bool   // the body was a web page

	// Unprocessed: the peer said at the level of HTTP/2 that it did not act on
	// this request (REFUSED_STREAM, or a graceful GOAWAY below its stream).
	Unprocessed bool
}

// Merge returns o with the members that later sets replaced.
func (o Observation) Merge(later Observation) Observation {
	o.Asked = o.Asked || later.Asked
	o.Connected = o.Connected || later.Connected
	o.Requests = max(o.Requests, later.Requests)
	o.HTML = o.HTML || later.HTML
	o.Unprocessed = o.Unprocessed || later.Unprocessed
	if later.Status != 0 {
		o.Status = later.Status
	}
	if later.RetryAfter != "" {
		o.RetryAfter = later.RetryAfter
	}
	if later.Code != "" {
		o.Code = later.Code
	}
	if later.Type != "" {
		o.Type = later.Type
	}
	if later.Message != "" {
		o.Message = later.Message
	}
	if later.BodyErr != nil {
		o.BodyErr = later.BodyErr
	}
	return o
}

// Classify says what the end of a call means: the table of the protocol's "What
// a failure means", one row a case. An error that already is a CallError keeps
// its class. Cause is the cause with which the attempt's context ended, nil
// while it lives; now turns a Retry-After date into a duration.
func Classify(err error, o Observation, cause error, now time.Time) *CallError {
	if err == nil {
		return nil
	}
	var own *CallError
	if errors.As(err, &own) {
		return own
	}
	e := &CallError{Err: err}
	switch {
	case o.Status >= 300:
		classifyStatus(e, o, now)
		return e
	case o.Asked && !o.Connected:
		e.Class, e.Code = ClassNotSent, CodeProviderUnavailable
		return e
	case o.Unprocessed:
		e.Class, e.Code = ClassRefusedTemporary, CodeProviderUnavailable
		return e
	case cause != nil && !errors.Is(cause, ErrCallTimeout):
		e.Class, e.Code = ClassInterrupted, "interrupted"
		return e
	case o.HTML:
		e.Class, e.Code = ClassUseless, CodeBadProviderResponse
		return e
	}
	// A connection was obtained, or we cannot tell: it may have run.
	e.Class, e.Code = ClassUnknown, CodeProviderUnavailable
	if errors.Is(cause, ErrCallTimeout) || errors.Is(err, ErrCallTimeout) || errors.Is(err, context.DeadlineExceeded) {
		e.Code = CodeTimeout
	}
	return e
}

// maxRetryAfter bounds what a header may ask for, so that it cannot overflow.
const maxRetryAfter = 366 * 24 * time.Hour

// ParseRetryAfter reads the header in both its forms, seconds and a date. What
// cannot be read, and what lies in the past, is zero: normal backoff.
func ParseRetryAfter(header string, now time.Time) time.Duration {
	header = textproto.TrimString(header)
	if header == "" {
		return 0
	}
	// A number too great for the type is a long wait, not a header left out.
	if seconds, err := strconv.ParseFloat(header, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if !(seconds > 0) { // also NaN
			return 0
		}
		if seconds >= maxRetryAfter.Seconds() {
			return maxRetryAfter
		}
		return time.Duration(seconds * float64(time.Second))
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, header); err == nil {
			return min(max(0, at.Sub(now)), maxRetryAfter)
		}
	}
	return 0
}

// Short cuts a provider's message to what fits a task's error: one line of at
// most 300 bytes, valid UTF-8 without control characters, which a database may
// refuse, and never cut in the middle of a character.
func Short(message string) string {
	message = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(message, "\ufffd"))
	message = strings.Join(strings.Fields(message), " ")
	if len(message) <= 300 {
		return message
	}
	return strings.ToValidUTF8(message[:297], "") + "…"
}
