package httpapi

import (
	"net/http"
	"strings"
)

// KeyHeader is the request header that names one press of Send. ReplayedHeader
// marks an answer that an earlier request with the same key had already earned.
const (
	KeyHeader      = "Idempotency-Key"
	ReplayedHeader = "Idempotent-Replayed"
)

const maxKeyBytes = 255

// requireKey returns the request's idempotency key, or the problem to answer:
// idempotency_key_missing or idempotency_key_invalid.
func requireKey(h http.Header) (string, error) {
	key, present, err := optionalKey(h)
	if err == nil && !present {
		return "", newProblem(codeKeyMissing, "This request creates work, so it needs an Idempotency-Key header: one key per press, the same key for every retry of it.")
	}
	return key, err
}

// optionalKey is requireKey for requests that may come without one. The header
// is a structured-field string ("k", RFC 9651) or the bare form that most
// clients send; both name the same key. What could be read in two ways is
// refused, never guessed: a second header line, parameters, a list, half a pair
// of quotes, a folded line (which arrives with a space in it).
func optionalKey(h http.Header) (key string, present bool, err error) {
	lines, present := h[KeyHeader]
	if !present || len(lines) == 0 {
		return "", false, nil
	}
	if len(lines) > 1 {
		return "", true, newProblem(codeKeyInvalid, "The Idempotency-Key header was sent more than once.")
	}
	key = strings.Trim(lines[0], " \t")
	if strings.HasPrefix(key, `"`) {
		if len(key) < 2 || !strings.HasSuffix(key, `"`) {
			return "", true, newProblem(codeKeyInvalid, "The Idempotency-Key header begins with a quote and does not end with one.")
		}
		key = key[1 : len(key)-1]
	}
	if key == "" {
		return "", true, newProblem(codeKeyInvalid, "The Idempotency-Key header is empty.")
	}
	if len(key) > maxKeyBytes {
		return "", true, newProblem(codeKeyInvalid, "The idempotency key is longer than 255 characters.")
	}
	for i := range len(key) {
		if c := key[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' || c == ',' || c == ';' {
			return "", true, newProblem(codeKeyInvalid, `The idempotency key may hold visible ASCII characters only, without quotes, backslashes, commas and semicolons.`)
		}
	}
	return key, true, nil
}
