package onereply_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/onereply/onereply"
)

// noon is the fixed present of these tests.
var noon = time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)

var errSDK = errors.New("what the SDK said")

func connected(status int) onereply.Observation {
	return onereply.Observation{Asked: true, Connected: true, Requests: 1, Status: status}
}

func with(o onereply.Observation, change func(*onereply.Observation)) onereply.Observation {
	change(&o)
	return o
}

// TestClassify goes through the table of "What a failure means", row by row.
func TestClassify(t *testing.T) {
	t.Parallel()
	type row struct {
		name  string
		err   error
		seen  onereply.Observation
		cause error
		class onereply.Class
		code  string
		after time.Duration
	}
	code := func(status int, code, kind string) onereply.Observation {
		return with(connected(status), func(o *onereply.Observation) { o.Code, o.Type = code, kind })
	}
	wait := func(status int, header string) onereply.Observation {
		return with(connected(status), func(o *onereply.Observation) { o.RetryAfter = header })
	}
	waiting := onereply.Observation{Asked: true}
	rows := []row{
		// Not sent.
		{name: "dial refused", seen: waiting, class: onereply.ClassNotSent, code: onereply.CodeProviderUnavailable},
		{name: "ended while waiting for a connection, call timeout", seen: waiting, cause: onereply.ErrCallTimeout, class: onereply.ClassNotSent, code: onereply.CodeProviderUnavailable},
		{name: "ended while waiting for a connection, drain", seen: waiting, cause: onereply.ErrDraining, class: onereply.ClassNotSent, code: onereply.CodeProviderUnavailable},
		// Refused, temporary.
		{name: "429", seen: connected(429), class: onereply.ClassRefusedTemporary, code: onereply.CodeRateLimited},
		{name: "429 with a code of that kind", seen: code(429, "rate_limit_exceeded", "tokens"), class: onereply.ClassRefusedTemporary, code: onereply.CodeRateLimited},
		{name: "429 in seconds", seen: wait(429, "2"), class: onereply.ClassRefusedTemporary, code: onereply.CodeRateLimited, after: 2 * time.Second},
		{name: "429 at a date", seen: wait(429, "Thu, 04 Mar 2027 12:00:03 GMT"), class: onereply.ClassRefusedTemporary, code: onereply.CodeRateLimited, after: 3 * time.Second},
		{name: "REFUSED_STREAM", seen: with(connected(0), func(o *onereply.Observation) { o.Unprocessed = true }), class: onereply.ClassRefusedTemporary, code: onereply.CodeProviderUnavailable},
		// Refused, permanent.
		{name: "a redirect", seen: connected(307), class: onereply.ClassRefusedPermanent, code: onereply.CodeProviderRejected},
		{name: "400", seen: connected(400), class: onereply.ClassRefusedPermanent, code: onereply.CodeProviderRejected},
		{name: "401", seen: connected(401), class: onereply.ClassRefusedPermanent, code: onereply.CodeUnauthenticated},
		{name: "402", seen: connected(402), class: onereply.ClassRefusedPermanent, code: onereply.CodeInsufficientQuota},
		{name: "403", seen: connected(403), class: onereply.ClassRefusedPermanent, code: onereply.CodeUnauthenticated},
		{name: "404", seen: connected(404), class: onereply.ClassRefusedPermanent, code: onereply.CodeProviderRejected},
		{name: "405", seen: connected(405), class: onereply.ClassRefusedPermanent, code: onereply.CodeProviderRejected},
		{name: "413", seen: connected(413), class: onereply.ClassRefusedPermanent, code: onereply.CodeContextTooLong},
		{name: "422", seen: connected(422), class: onereply.ClassRefusedPermanent, code: onereply.CodeProviderRejected},
		{name: "context too long", seen: code(400, "context_length_exceeded", "invalid_request_error"), class: onereply.ClassRefusedPermanent, code: onereply.CodeContextTooLong},
		{name: "content filter", seen: code(400, "content_filter", ""), class: onereply.ClassRefusedPermanent, code: onereply.CodeContentFiltered},
		{name: "quota by code", seen: code(429, "insufficient_quota", ""), class: onereply.ClassRefusedPermanent, code: onereply.CodeInsufficientQuota},
		{name: "quota by kind", seen: code(429, "novel", "insufficient_quota"), class: onereply.ClassRefusedPermanent, code: onereply.CodeInsufficientQuota},
		{name: "spend limit", seen: code(429, "enforced_spend_limit_reached", "rate_limit_error"), class: onereply.ClassRefusedPermanent, code: onereply.CodeInsufficientQuota},
		{name: "billing behind a 500", seen: code(500, "", "billing_error"), class: onereply.ClassRefusedPermanent, code: onereply.CodeInsufficientQuota},
		// Unknown.
		{name: "reset after a connection", seen: connected(0), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "reset, no word from the transport", class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "call timeout by cause", seen: connected(0), cause: onereply.ErrCallTimeout, class: onereply.ClassUnknown, code: onereply.CodeTimeout},
		{name: "call timeout by a wrapped cause", seen: connected(0), cause: fmt.Errorf("call 2: %w", onereply.ErrCallTimeout), class: onereply.ClassUnknown, code: onereply.CodeTimeout},
		{name: "the SDK's own timeout", err: fmt.Errorf("post: %w", context.DeadlineExceeded), seen: connected(0), class: onereply.ClassUnknown, code: onereply.CodeTimeout},
		{name: "200, then cut", err: io.ErrUnexpectedEOF, seen: with(connected(200), func(o *onereply.Observation) { o.BodyErr = io.ErrUnexpectedEOF }), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "408", seen: connected(408), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "409", seen: connected(409), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "500", seen: connected(500), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "502", seen: connected(502), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "503 with a wish", seen: wait(503, "4"), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable, after: 4 * time.Second},
		{name: "504", seen: connected(504), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		{name: "529 with a wish", seen: wait(529, "4"), class: onereply.ClassUnknown, code: onereply.CodeProviderOverloaded, after: 4 * time.Second},
		{name: "599", seen: connected(599), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		// Useless.
		{name: "a page with 200", seen: with(connected(200), func(o *onereply.Observation) { o.HTML = true }), class: onereply.ClassUseless, code: onereply.CodeBadProviderResponse},
		// A page with an error status is judged by the status.
		{name: "a page with 502", seen: with(connected(502), func(o *onereply.Observation) { o.HTML = true }), class: onereply.ClassUnknown, code: onereply.CodeProviderUnavailable},
		// Interrupted.
		{name: "cancelled in a call", seen: connected(0), cause: onereply.ErrCancelled, class: onereply.ClassInterrupted, code: "interrupted"},
		{name: "lease lost in a call", seen: connected(0), cause: onereply.ErrLeaseLost, class: onereply.ClassInterrupted, code: "interrupted"},
		{name: "drained in the body", seen: connected(200), cause: onereply.ErrDraining, class: onereply.ClassInterrupted, code: "interrupted"},
		// What the provider said outweighs why we stopped listening.
		{name: "cancelled while reading a 400", seen: connected(400), cause: onereply.ErrCancelled, class: onereply.ClassRefusedPermanent, code: onereply.CodeProviderRejected},
		// What an adapter classified stays.
		{name: "the adapter's own class", err: fmt.Errorf("adapter: %w", onereply.Useless(onereply.CodeEmptyAnswer, errSDK)), seen: connected(500), class: onereply.ClassUseless, code: onereply.CodeEmptyAnswer},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			err := r.err
			if err == nil {
				err = errSDK
			}
			got := onereply.Classify(err, r.seen, r.cause, noon)
			if got.Class != r.class || got.Code != r.code || got.RetryAfter != r.after {
				t.Errorf("got %s (%s) after %s, want %s (%s) after %s", got.Class, got.Code, got.RetryAfter, r.class, r.code, r.after)
			}
			if !errors.Is(err, got) && !errors.Is(got, err) {
				t.Errorf("the cause is lost: %v", got)
			}
		})
	}
}

func TestClassifyOfNoError(t *testing.T) {
	t.Parallel()
	if got := onereply.Classify(nil, connected(500), onereply.ErrCancelled, noon); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestOnlyARejectionShowsTheProvidersWords(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 200, 307, 400, 401, 402, 403, 404, 413, 422, 429, 500, 529} {
		o := with(connected(status), func(o *onereply.Observation) { o.Message = "no model\n called x" })
		got := onereply.Classify(errSDK, o, nil, noon)
		want := ""
		if got.Code == onereply.CodeProviderRejected {
			want = "no model called x"
		}
		if got.Message != want {
			t.Errorf("%d: message %q, want %q", status, got.Message, want)
		}
		if f := got.Failure(); f.Message == "" || strings.Contains(f.Message, errSDK.Error()) {
			t.Errorf("%d: failure %+v", status, f)
		}
	}
}

func TestClassifyCode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, code, kind string
		begun            bool
		class            onereply.Class
		want             string
	}{
		{"overload before output", "", "overloaded_error", false, onereply.ClassUnknown, onereply.CodeProviderOverloaded},
		{"overload after output", "", "overloaded_error", true, onereply.ClassUnknown, onereply.CodeProviderOverloaded},
		{"rate limit before output", "rate_limit_exceeded", "tokens", false, onereply.ClassRefusedTemporary, onereply.CodeRateLimited},
		{"rate limit after output", "rate_limit_exceeded", "tokens", true, onereply.ClassUnknown, onereply.CodeRateLimited},
		{"quota before output", "insufficient_quota", "", false, onereply.ClassRefusedPermanent, onereply.CodeInsufficientQuota},
		{"quota after output", "", "insufficient_quota", true, onereply.ClassRefusedPermanent, onereply.CodeInsufficientQuota},
		{"filter after output", "content_filter", "", true, onereply.ClassRefusedPermanent, onereply.CodeContentFiltered},
		{"a bad request before output", "", "invalid_request_error", false, onereply.ClassRefusedPermanent, onereply.CodeProviderRejected},
		{"a bad request after output", "", "invalid_request_error", true, onereply.ClassUnknown, onereply.CodeProviderRejected},
		{"status 429 as a number", "429", "", false, onereply.ClassRefusedTemporary, onereply.CodeRateLimited},
		{"status 502 as a number", "502", "", false, onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"status 401 as a number", "401", "", false, onereply.ClassRefusedPermanent, onereply.CodeUnauthenticated},
		{"a number that is no status", "1302", "", false, onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"a word nobody knows", "server_error", "api_error", false, onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"nothing", "", "", false, onereply.ClassUnknown, onereply.CodeProviderUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := onereply.ClassifyCode(test.code, test.kind, test.begun, errSDK)
			if got.Class != test.class || got.Code != test.want || !errors.Is(got, errSDK) {
				t.Errorf("got %v, want %s (%s)", got, test.class, test.want)
			}
		})
	}
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	const year = 366 * 24 * time.Hour
	tests := []struct {
		header string
		want   time.Duration
	}{
		{"", 0}, {" ", 0}, {"0", 0}, {"2", 2 * time.Second}, {" 2 ", 2 * time.Second}, {"1.5", 1500 * time.Millisecond},
		{"10800", 3 * time.Hour}, {"-1", 0}, {"-0", 0}, {"soon", 0}, {"2s", 0}, {"1,5", 0},
		{"NaN", 0}, {"nan", 0}, {"Inf", year}, {"-Inf", 0}, {"1e300", year}, {"1e400", year}, {"-1e400", 0}, {"99999999999999999999", year},
		{"Thu, 04 Mar 2027 12:00:03 GMT", 3 * time.Second},
		{"Thursday, 04-Mar-27 12:00:03 GMT", 3 * time.Second},
		{"Thu Mar  4 12:00:03 2027", 3 * time.Second},
		{"Thu, 04 Mar 2027 11:59:00 GMT", 0},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", year},
		{"Thu, 99 Mar 2027 12:00:03 GMT", 0},
		{"2027-03-04T12:00:03Z", 0},
	}
	for _, test := range tests {
		if got := onereply.ParseRetryAfter(test.header, noon); got != test.want {
			t.Errorf("%q: got %s, want %s", test.header, got, test.want)
		}
	}
}

func TestARetryAfterIsNeverNegativeNorBeyondAYear(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		header := rapid.OneOf(rapid.String(), rapid.Map(rapid.Float64(), func(f float64) string { return fmt.Sprint(f) })).Draw(t, "header")
		if d := onereply.ParseRetryAfter(header, noon); d < 0 || d > 366*24*time.Hour {
			t.Fatalf("%q: %s", header, d)
		}
	})
	if d := onereply.ParseRetryAfter(fmt.Sprint(math.MaxFloat64), noon); d <= 0 {
		t.Errorf("the greatest number: %s", d)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		message := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		message = strings.Repeat(message, rapid.IntRange(1, 40).Draw(t, "times"))
		got := onereply.Short(message)
		if len(got) > 300 || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\n\r\t\x1b\x7f") {
			t.Fatalf("%q became %q (%d bytes)", message, got, len(got))
		}
		if onereply.Short(got) != got {
			t.Fatalf("%q is not short enough for itself", got)
		}
	})
	if got := onereply.Short(" a\n b\x00c "); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

func TestLaterObservationsReplaceWhatTheySet(t *testing.T) {
	t.Parallel()
	first := onereply.Observation{Asked: true, Connected: true, Requests: 1, Status: 500, RetryAfter: "1", Code: "c", Type: "t", Message: "m", BodyErr: io.EOF, HTML: true, Unprocessed: true}
	opts := cmpopts.EquateErrors()
	if diff := cmp.Diff(first, first.Merge(onereply.Observation{}), opts); diff != "" {
		t.Errorf("an empty one changed something:\n%s", diff)
	}
	if diff := cmp.Diff(first, onereply.Observation{}.Merge(first), opts); diff != "" {
		t.Errorf("something got lost:\n%s", diff)
	}
	later := onereply.Observation{Requests: 2, Status: 200, RetryAfter: "2", Code: "d", Type: "u", Message: "n", BodyErr: io.ErrUnexpectedEOF}
	want := onereply.Observation{Asked: true, Connected: true, Requests: 2, Status: 200, RetryAfter: "2", Code: "d", Type: "u", Message: "n", BodyErr: io.ErrUnexpectedEOF, HTML: true, Unprocessed: true}
	if diff := cmp.Diff(want, first.Merge(later), opts); diff != "" {
		t.Error(diff)
	}
}

func TestTheConstructorsOfOutcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want onereply.Class
	}{
		{onereply.NotSent("c", errSDK), onereply.ClassNotSent},
		{onereply.RefusedTemporary("c", time.Second, errSDK), onereply.ClassRefusedTemporary},
		{onereply.RefusedPermanent("c", errSDK), onereply.ClassRefusedPermanent},
		{onereply.Useless("c", errSDK), onereply.ClassUseless},
		{onereply.UnknownOutcome("c", errSDK), onereply.ClassUnknown},
	}
	for _, test := range tests {
		var e *onereply.CallError
		if !errors.As(test.err, &e) || e.Class != test.want || e.Code != "c" || !errors.Is(test.err, errSDK) {
			t.Errorf("got %v, want %s", test.err, test.want)
		}
		if !strings.Contains(test.err.Error(), string(test.want)) || !strings.Contains(test.err.Error(), "c") {
			t.Errorf("text %q", test.err)
		}
	}
	if f := (&onereply.CallError{Class: onereply.ClassUseless}).Failure(); f.Code != "useless" {
		t.Errorf("a failure without a code: %+v", f)
	}
}
