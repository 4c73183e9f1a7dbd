package jsonstrict

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns the document in the one form that is hashed: members sorted
// by the UTF-16 units of their names as RFC 8785 has it, no white space, only
// the escapes that must be, and one spelling for each number's value.
//
// Nothing the client said is lost: no member is dropped, whatever its value;
// array order stays; strings are not normalised, so that composed and
// decomposed letters differ. It refuses the malformed documents that [Decode]
// refuses, with the same errors. Canonical of its own result is that result.
func Canonical(raw []byte) ([]byte, error) {
	doc, err := parse(raw)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, len(raw)))
	write(b, doc)
	return b.Bytes(), nil
}

func write(b *bytes.Buffer, v value) {
	switch v.kind {
	case object:
		writeObject(b, v.members)
	case array:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	case text:
		writeString(b, v.text)
	case number:
		b.WriteString(v.number.String())
	case boolean:
		if v.truth {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	}
}

func writeObject(b *bytes.Buffer, members []member) {
	sorted := slices.SortedFunc(slices.Values(members), func(x, y member) int {
		return compareUTF16(x.name, y.name)
	})
	b.WriteByte('{')
	for i, m := range sorted {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, m.name)
		b.WriteByte(':')
		write(b, m.value)
	}
	b.WriteByte('}')
}

func writeString(b *bytes.Buffer, s string) {
	const hex = "0123456789abcdef"
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			if c < 0x20 {
				b.WriteString(`\u00`)
				b.WriteByte(hex[c>>4])
				b.WriteByte(hex[c&15])
				continue
			}
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

// compareUTF16 orders as UTF-16 does, where characters outside the basic plane
// come before U+E000 and above. Both strings are valid UTF-8.
func compareUTF16(x, y string) int {
	for x != "" && y != "" {
		a, n := utf8.DecodeRuneInString(x)
		b, m := utf8.DecodeRuneInString(y)
		if a != b {
			return firstUnit(a) - firstUnit(b) + tieBreak(a, b)
		}
		x, y = x[n:], y[m:]
	}
	return len(x) - len(y)
}

func firstUnit(r rune) int {
	if high, _ := utf16.EncodeRune(r); high != utf8.RuneError {
		return int(high)
	}
	return int(r)
}

// tieBreak orders two characters that share their first unit by the second.
func tieBreak(a, b rune) int {
	if firstUnit(a) != firstUnit(b) {
		return 0
	}
	return int(a - b)
}
