package jsonstrict

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind of a parsed value.
type kind uint8

const (
	object kind = iota + 1
	array
	text
	number
	boolean
)

func (k kind) String() string {
	return [...]string{object: "an object", array: "an array", text: "a string", number: "a number", boolean: "a boolean"}[k]
}

// value is one parsed JSON value. Of its members only those of its kind are set.
type value struct {
	kind    kind
	raw     []byte // as it stood in the document
	members []member
	items   []value
	text    string // unescaped
	number  decimal
	truth   bool
}

type member struct {
	name  string // unescaped
	value value
}

// parser walks the document once. Every rule that makes a document malformed
// for anybody is in this file and number.go.
type parser struct {
	in    []byte
	at    int
	depth int
}

// parse reads exactly one value.
func parse(raw []byte) (value, error) {
	if !utf8.Valid(raw) {
		return value{}, malformed("", "the body is not valid UTF-8")
	}
	p := &parser{in: raw}
	p.space()
	if p.at == len(p.in) {
		return value{}, malformed("", "the body is empty")
	}
	v, err := p.value("")
	if err != nil {
		return value{}, err
	}
	p.space()
	if p.at != len(p.in) {
		return value{}, malformed("", "something follows the JSON value"+p.where())
	}
	return v, nil
}

func malformed(path, message string) *Error {
	return &Error{Path: path, Message: message, Malformed: true}
}

// where names the place for messages about syntax, in bytes from 1.
func (p *parser) where() string { return " at byte " + strconv.Itoa(p.at+1) }

func (p *parser) syntax(path, expected string) *Error {
	if p.at == len(p.in) {
		return malformed(path, "the JSON ends where "+expected+" should be")
	}
	return malformed(path, "expected "+expected+p.where())
}

func (p *parser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end. A NUL is no token of JSON, so
// the two need no telling apart.
func (p *parser) peek() byte {
	if p.at == len(p.in) {
		return 0
	}
	return p.in[p.at]
}

func (p *parser) value(path string) (v value, err error) {
	start := p.at
	switch c := p.peek(); {
	case c == '{':
		v, err = p.nested(path, p.object)
	case c == '[':
		v, err = p.nested(path, p.array)
	case c == '"':
		v.kind = text
		v.text, err = p.string(path)
	case c == '-' || '0' <= c && c <= '9':
		v.kind = number
		v.number, err = p.number(path)
	case p.word("true"):
		v = value{kind: boolean, truth: true}
	case p.word("false"):
		v = value{kind: boolean}
	case p.word("null"):
		err = malformed(path, "null is not accepted; leave the member out")
	default:
		err = p.syntax(path, "a value")
	}
	v.raw = p.in[start:p.at]
	return v, err
}

func (p *parser) word(w string) bool {
	if !bytes.HasPrefix(p.in[p.at:], []byte(w)) {
		return false
	}
	p.at += len(w)
	return true
}

// nested holds the depth, so that a bomb of brackets is refused before it
// costs a stack.
func (p *parser) nested(path string, read func(string) (value, error)) (value, error) {
	if p.depth == MaxDepth {
		return value{}, malformed(path, "nested deeper than "+strconv.Itoa(MaxDepth)+" levels")
	}
	p.depth++
	p.at++
	p.space()
	v, err := read(path)
	p.depth--
	return v, err
}

func (p *parser) object(path string) (value, error) {
	v := value{kind: object}
	seen := map[string]struct{}{}
	for p.peek() != '}' {
		if len(v.members) > 0 {
			if p.peek() != ',' {
				return v, p.syntax(path, "a comma or }")
			}
			p.at++
			p.space()
		}
		if p.peek() != '"' {
			return v, p.syntax(path, "a member's name")
		}
		name, err := p.string(path)
		if err != nil {
			return v, err
		}
		here := pointer(path, name)
		if _, twice := seen[name]; twice {
			return v, malformed(here, "the member is given twice")
		}
		seen[name] = struct{}{}
		p.space()
		if p.peek() != ':' {
			return v, p.syntax(here, "a colon")
		}
		p.at++
		p.space()
		m, err := p.value(here)
		if err != nil {
			return v, err
		}
		v.members = append(v.members, member{name, m})
		p.space()
	}
	p.at++
	return v, nil
}

func (p *parser) array(path string) (value, error) {
	v := value{kind: array}
	for p.peek() != ']' {
		if len(v.items) > 0 {
			if p.peek() != ',' {
				return v, p.syntax(path, "a comma or ]")
			}
			p.at++
			p.space()
		}
		item, err := p.value(pointerIndex(path, len(v.items)))
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		p.space()
	}
	p.at++
	return v, nil
}

// string reads a string and takes its escapes out. The parser stands on the
// opening quote.
func (p *parser) string(path string) (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.in) && p.in[p.at] != '"' && p.in[p.at] != '\\' && p.in[p.at] >= 0x20 {
		p.at++
	}
	if p.peek() == '"' { // the usual case: nothing to take out
		s := string(p.in[start:p.at])
		p.at++
		return s, nil
	}
	out := append([]byte(nil), p.in[start:p.at]...)
	for p.at < len(p.in) {
		switch c := p.in[p.at]; {
		case c == '"':
			p.at++
			return string(out), nil
		case c == '\\':
			r, err := p.escape(path)
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < 0x20:
			return "", malformed(path, "a control character in a string must be escaped"+p.where())
		default:
			out = append(out, c)
			p.at++
		}
	}
	return "", malformed(path, "a string has no end")
}

// escape reads one escape, or the two that make a character outside the basic
// plane. The parser stands on the backslash.
func (p *parser) escape(path string) (rune, error) {
	if p.at+1 == len(p.in) {
		return 0, malformed(path, "a string has no end")
	}
	c := p.in[p.at+1]
	if c != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return 0, malformed(path, "unknown escape in a string"+p.where())
		}
		p.at += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	r, ok := p.unit()
	if !ok {
		return 0, malformed(path, `\u must be followed by four hexadecimal digits`+p.where())
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if low, ok := p.unit(); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
	}
	return 0, malformed(path, "a surrogate stands alone in a string")
}

// unit reads one \uXXXX. It moves only when there is one.
func (p *parser) unit() (rune, bool) {
	if p.at+6 > len(p.in) || p.in[p.at] != '\\' || p.in[p.at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.in[p.at+2:p.at+6]), 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += 6
	return rune(n), true
}
