package onereply

import (
	"strconv"
	"time"
)

// classifyStatus is the part of [Classify] that goes by the status of the
// response and by the error its body named.
func classifyStatus(e *CallError, o Observation, now time.Time) {
	e.RetryAfter = ParseRetryAfter(o.RetryAfter, now)
	if code, ok := permanentCode(o.Code, o.Type); ok {
		e.Class, e.Code = ClassRefusedPermanent, code
		return
	}
	switch o.Status {
	case 429:
		e.Class, e.Code = ClassRefusedTemporary, CodeRateLimited
	case 529:
		e.Class, e.Code = ClassUnknown, CodeProviderOverloaded
	case 408, 409:
		e.Class, e.Code = ClassUnknown, CodeProviderUnavailable
	case 401, 403:
		e.Class, e.Code = ClassRefusedPermanent, CodeUnauthenticated
	case 402:
		e.Class, e.Code = ClassRefusedPermanent, CodeInsufficientQuota
	case 413:
		e.Class, e.Code = ClassRefusedPermanent, CodeContextTooLong
	default:
		if o.Status >= 500 {
			e.Class, e.Code = ClassUnknown, CodeProviderUnavailable
			return
		}
		// Other 4xx, and redirects, which are returned and not followed. Here the
		// provider's own words help most: which parameter, which model.
		e.Class, e.Code, e.Message = ClassRefusedPermanent, CodeProviderRejected, Short(o.Message)
	}
}

// ClassifyCode says what an error means that a provider sent without a status
// of its own: as an event of a stream, or as the body of a 200. Begun says that
// output had begun by then, so that work was done and may have been charged;
// only an error that no repetition can cure ends the task then. Code and kind
// are the provider's, either may be empty, and a number counts as the status it
// stands for.
func ClassifyCode(code, kind string, begun bool, err error) *CallError {
	e := &CallError{Class: ClassUnknown, Code: CodeProviderUnavailable, Err: err}
	if known, ok := permanentCode(code, kind); ok {
		e.Class, e.Code = ClassRefusedPermanent, known
		return e
	}
	if status, bad := strconv.Atoi(code); bad == nil && status >= 400 && status < 600 {
		classifyStatus(e, Observation{Status: status}, time.Time{})
	}
	for _, word := range []string{code, kind} {
		if c, ok := eventCodes[word]; ok {
			e.Class, e.Code = c.class, c.code
			break
		}
	}
	if begun {
		e.Class = ClassUnknown
	}
	return e
}

// eventCodes are the errors that OpenAI, its compatibles and Anthropic send in a
// stream and that another call may well survive.
var eventCodes = map[string]struct {
	class Class
	code  string
}{
	"rate_limit_exceeded":   {ClassRefusedTemporary, CodeRateLimited},
	"rate_limit_error":      {ClassRefusedTemporary, CodeRateLimited},
	"slow_down":             {ClassRefusedTemporary, CodeRateLimited},
	"overloaded_error":      {ClassUnknown, CodeProviderOverloaded},
	"server_is_overloaded":  {ClassUnknown, CodeProviderOverloaded},
	"timeout_error":         {ClassUnknown, CodeTimeout},
	"invalid_request_error": {ClassRefusedPermanent, CodeProviderRejected},
	"not_found_error":       {ClassRefusedPermanent, CodeProviderRejected},
}

func permanentCode(words ...string) (string, bool) {
	for _, word := range words {
		if code, ok := permanentCodes[word]; ok {
			return code, true
		}
	}
	return "", false
}

// permanentCodes are error codes of providers that end a task whatever the
// status: OpenAI and its compatibles, and Anthropic.
var permanentCodes = map[string]string{
	"insufficient_quota":                CodeInsufficientQuota,
	"credit_balance_exhausted":          CodeInsufficientQuota,
	"billing_error":                     CodeInsufficientQuota,
	"billing_hard_limit_reached":        CodeInsufficientQuota,
	"organization_spend_limit_exceeded": CodeInsufficientQuota,
	"project_spend_limit_exceeded":      CodeInsufficientQuota,
	"organization_usage_limit_exceeded": CodeInsufficientQuota,
	"enforced_spend_limit_reached":      CodeInsufficientQuota,
	"contract_spend_limit_reached":      CodeInsufficientQuota,
	"context_length_exceeded":           CodeContextTooLong,
	"exceed_context_size_error":         CodeContextTooLong,
	"request_too_large":                 CodeContextTooLong,
	"content_filter":                    CodeContentFiltered,
	"content_policy":                    CodeContentFiltered,
	"content_policy_violation":          CodeContentFiltered,
	"invalid_api_key":                   CodeUnauthenticated,
	"authentication_error":              CodeUnauthenticated,
	"permission_error":                  CodeUnauthenticated,
}
