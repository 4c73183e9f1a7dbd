package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
)

// The errors an Authorize function returns to refuse a request. Any other error
// of it is answered like one of the store's.
var (
	// ErrUnauthorized: no credential, or one that is not known; answered 401.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: a known credential that may not do this; answered 403.
	ErrForbidden = errors.New("forbidden")
)

// Problem codes: the last segment of a problem's type.
const (
	codeUnauthorized      = "unauthorized"
	codeForbidden         = "forbidden"
	codeNotFound          = "not_found"
	codeMethodNotAllowed  = "method_not_allowed"
	codeTaskEnded         = "task_ended"
	codeTaskNotFailed     = "task_not_failed"
	codeDeadlineExceeded  = "deadline_exceeded"
	codeTooLarge          = "too_large"
	codeUnsupportedMedia  = "unsupported_media_type"
	codeKeyMissing        = "idempotency_key_missing"
	codeKeyInvalid        = "idempotency_key_invalid"
	codeInvalidJSON       = "invalid_json"
	codeInvalidRequest    = "invalid_request"
	codeKeyReused         = "idempotency_key_reused"
	codeRateLimited       = "rate_limited"
	codeInternal          = "internal"
	codeUnavailable       = "unavailable"
	problemTypePrefix     = "/problems/"
	problemMediaType      = "application/problem+json"
	retryAfterUnavailable = 1 // seconds
)

// kindOfProblem is what does not change between occurrences.
type kindOfProblem struct {
	status int
	title  string
	help   string // what a developer who follows the type's link should know
}

// problemKind is the one table of codes.
func problemKind(code string) (kindOfProblem, bool) {
	switch code {
	case codeUnauthorized:
		return kindOfProblem{401, "Unauthorized", "Send a valid API key as Authorization: Bearer …. The answer is the same whether or not the thing asked for exists."}, true
	case codeForbidden:
		return kindOfProblem{403, "Forbidden", "The credential may not do this, or a browser sent the request from another site or under a foreign host name."}, true
	case codeNotFound:
		return kindOfProblem{404, "Not found", "No such route, or no such thing in this workspace. A deleted thing is not found, also for a known idempotency key."}, true
	case codeMethodNotAllowed:
		return kindOfProblem{405, "Method not allowed", "The Allow header lists the methods of this route."}, true
	case codeTaskEnded:
		return kindOfProblem{409, "The task has ended", "A completed task cannot be cancelled, and only a failed one can be resumed. task_status says how it ended."}, true
	case codeTaskNotFailed:
		return kindOfProblem{409, "The task has not failed", "Only a failed task can be resumed; this one is still queued or running."}, true
	case codeDeadlineExceeded:
		return kindOfProblem{409, "The deadline has passed", "Give a new deadline to resume this task."}, true
	case codeTooLarge:
		return kindOfProblem{413, "Too large", "The request body or the message is above the server's limit. Nothing was recorded: a smaller request may use the same key."}, true
	case codeUnsupportedMedia:
		return kindOfProblem{415, "Unsupported media type", "Send application/json in UTF-8 without a content coding."}, true
	case codeKeyMissing:
		return kindOfProblem{400, "Idempotency key missing", "Mint one key per press of Send, store it with the request, and send it with every retry."}, true
	case codeKeyInvalid:
		return kindOfProblem{400, "Idempotency key invalid", "1 to 255 visible ASCII characters without quotes, backslashes, commas and semicolons, in one header line, bare or in double quotes."}, true
	case codeInvalidJSON:
		return kindOfProblem{400, "Invalid JSON", "The body must be one JSON object with the documented members, each at most once and spelled exactly, and valid UTF-8. Nothing was recorded: a corrected request may use the same key."}, true
	case codeInvalidRequest:
		return kindOfProblem{400, "Invalid request", "A value makes no sense; detail says which. Nothing was recorded: a corrected request may use the same key."}, true
	case codeKeyReused:
		return kindOfProblem{422, "Idempotency key reused", "This key already stands for other inputs. Retry with the very same inputs, or mint a new key for new work."}, true
	case codeRateLimited:
		return kindOfProblem{429, "Too many requests", "Wait for Retry-After seconds and send the same request with the same key."}, true
	case codeInternal:
		return kindOfProblem{500, "Internal error", "The request id in X-Request-Id finds the cause in the server's log. Retry with the same key."}, true
	case codeUnavailable:
		return kindOfProblem{503, "Unavailable", "The database cannot be reached now. Retry with the same key after Retry-After seconds: work is never doubled."}, true
	}
	return kindOfProblem{}, false
}

// problem is an error that says exactly what to answer (RFC 9457).
type problem struct {
	code       string
	detail     string
	header     http.Header    // added to the answer; nil: none
	extensions map[string]any // members beside the standard ones; nil: none
	cause      error          // for the log, never for the wire
}

func newProblem(code, detail string) *problem { return &problem{code: code, detail: detail} }

func (p *problem) Error() string {
	s := p.code + ": " + p.detail
	if p.cause != nil {
		s += ": " + p.cause.Error()
	}
	return s
}

func (p *problem) Unwrap() error { return p.cause }

// with adds an extension member and returns p.
func (p *problem) with(name string, value any) *problem {
	p.extensions = maps.Clone(p.extensions)
	if p.extensions == nil {
		p.extensions = make(map[string]any, 1)
	}
	p.extensions[name] = value
	return p
}

// withHeader adds a header and returns p.
func (p *problem) withHeader(name, value string) *problem {
	if p.header == nil {
		p.header = make(http.Header, 1)
	}
	p.header.Set(name, value)
	return p
}

// asProblem says what an error is to a client. The text of an error never
// reaches the wire, because it may tell of other workspaces or of the house;
// one exception is ErrInvalid, whose message is made for the caller.
func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	switch {
	case errors.Is(err, ErrUnauthorized):
		p = newProblem(codeUnauthorized, "This request needs a valid API key.").withHeader("WWW-Authenticate", "Bearer")
	case errors.Is(err, ErrForbidden):
		p = newProblem(codeForbidden, "This credential may not do that.")
	case errors.Is(err, onereply.ErrUnavailable), errors.Is(err, onereply.ErrCommitUnknown), errors.Is(err, onereply.ErrClosed),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p = newProblem(codeUnavailable, "The request could not be recorded or read now. Retry it with the same key.").
			withHeader("Retry-After", strconv.Itoa(retryAfterUnavailable))
	case errors.Is(err, onereply.ErrKeyReused):
		p = newProblem(codeKeyReused, "This idempotency key was used before with other inputs; nothing was recorded.")
	case errors.Is(err, onereply.ErrNotFound):
		p = newProblem(codeNotFound, "There is nothing here by that name.")
	case errors.Is(err, onereply.ErrDeadlineExceeded):
		p = newProblem(codeDeadlineExceeded, "The task's deadline has passed; give a new one.")
	case errors.Is(err, onereply.ErrNotFailed):
		p = newProblem(codeTaskNotFailed, "Only a failed task can be resumed.")
	case errors.Is(err, onereply.ErrEnded):
		p = newProblem(codeTaskEnded, "The task has ended.")
	case errors.Is(err, chat.ErrTooLarge):
		p = newProblem(codeTooLarge, invalidDetail(err, chat.ErrTooLarge))
	case errors.Is(err, onereply.ErrInvalid):
		p = newProblem(codeInvalidRequest, invalidDetail(err, onereply.ErrInvalid))
	default:
		p = newProblem(codeInternal, "Something went wrong on the server.")
	}
	p.cause = err
	if member := (*chat.MemberError)(nil); errors.As(err, &member) {
		return p.with("pointer", member.Pointer)
	}
	return p
}

// invalidDetail gives the part of an ErrInvalid's text that is meant for the
// caller: what follows the sentinel's own word.
func invalidDetail(err, sentinel error) string {
	_, detail, found := strings.Cut(err.Error(), sentinel.Error()+": ")
	if !found || detail == "" {
		return "A value of the request makes no sense."
	}
	return strings.ToUpper(detail[:1]) + detail[1:] + "."
}

// write answers with the problem. Its status member equals the wire's.
func (p *problem) write(w http.ResponseWriter) error {
	kind, known := problemKind(p.code)
	if !known {
		return fmt.Errorf("problem code %q is not in the table", p.code)
	}
	body := make(map[string]any, 4+len(p.extensions))
	maps.Copy(body, p.extensions)
	body["type"] = problemTypePrefix + p.code
	body["title"] = kind.title
	body["status"] = kind.status
	body["detail"] = p.detail
	maps.Copy(w.Header(), p.header)
	return writeJSON(w, kind.status, problemMediaType, body)
}

// serveProblemType answers the page that a problem's type points to.
func (h *handler) serveProblemType(w http.ResponseWriter, r *http.Request, _ string) error {
	code := r.PathValue("code")
	kind, known := problemKind(code)
	if !known {
		return newProblem(codeNotFound, "There is no problem type by that name.")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintf(w, "%s (%d)\n%s\n\n%s\n", code, kind.status, kind.title, kind.help)
	return wireError(err)
}
