// Package jsonstrict reads the JSON bodies of an API in one way only, so that a
// request can never mean one thing to the code that acts on it and another to
// the fingerprint its idempotency key is bound to.
//
// [Decode] fills a Go value and refuses what encoding/json lets pass silently:
// bytes that are no UTF-8, lone surrogates, duplicate members, members nobody
// asked for or spelled in another case, null, numbers that a float64 cannot
// hold exactly, and anything after the value. [Canonical] writes the same
// document in the one form that is hashed: what differs only in spelling
// becomes equal, what differs in meaning stays different.
//
// Start reading at parse.go: both functions see a document only through its
// parser. The package imports only the standard library.
package jsonstrict

import (
	"strconv"
	"strings"
)

// MaxDepth is how many levels of objects and arrays a document may nest.
const MaxDepth = 32

// Error says what is wrong with a document and where. Its text is short,
// quotes at most a member's name, and may be shown to the client.
type Error struct {
	// Path is a JSON pointer (RFC 6901) to the value; empty for the whole document.
	Path string
	// Message says what is wrong there.
	Message string
	// Malformed is true when the bytes are no acceptable JSON for anybody, and
	// false when they are and do not fit what was asked for.
	Malformed bool
}

// Error gives the path and the message.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Decode reads one JSON document into the value that into points to.
//
// Members are matched to struct fields by their exact name, as given by the
// field's json tag. A member that is absent leaves its field as it was, so a
// pointer field tells absent from zero. Fields may be strings, booleans,
// numbers, structs, slices, maps with string keys, pointers to these,
// json.RawMessage, and types with UnmarshalJSON or UnmarshalText. A number
// whose value is whole fits an integer field however it is spelled.
//
// A document that is refused gives an [*Error], and into may then be partly
// filled. Another error means that into is of a kind that cannot be filled,
// which is a mistake in the program.
func Decode(raw []byte, into any) error {
	doc, err := parse(raw)
	if err != nil {
		return err
	}
	return bindRoot(doc, into)
}

// pointer joins a path and one more step, escaped as RFC 6901 says and cut to a
// length that fits a message.
func pointer(path, step string) string {
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(step))
}

func pointerIndex(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// clip bounds what a message quotes of the client's own words.
func clip(s string) string {
	const most = 40
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
