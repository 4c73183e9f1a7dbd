package main

import (
	"io"
	"strings"
)

// plainWriter writes text that cannot steer a terminal. What a model, a
// provider or another user wrote may hold escape sequences, which would move the
// cursor, hide what stands above or set the clipboard, so every control
// character but the line feed and the tab is shown as a picture of itself.
type plainWriter struct{ w io.Writer }

// Write writes the whole of b, of which each control character lies whole in one
// call, or nothing.
func (p plainWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, plain(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// plain replaces control characters: those of ASCII by Unicode's pictures of
// them, those from U+0080 by the replacement character. A carriage return, which
// a terminal takes for "write over this line", goes.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		case r >= 0x80 && r <= 0x9f:
			return 0xfffd
		}
		return r
	}, text)
}
