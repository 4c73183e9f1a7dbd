// Package sse writes and reads Server-Sent Events, the text/event-stream
// format of the HTML standard. Append and AppendComment make the bytes a server
// sends; a [Reader] takes a stream apart again, for the Go client and for tests.
// Neither opens connections or keeps time.
package sse

import "strings"

// Event is one event of a stream.
type Event struct {
	// ID is what a reader sends back as Last-Event-ID. Written: left out when
	// empty. Read: the last id the stream has set, with this event or before it.
	ID string
	// Type is the event's name; empty stands for "message".
	Type string
	// Data is the payload. Its line ends arrive as "\n" whatever was sent.
	Data string
}

// Append appends the event to dst in its wire form, the blank line included,
// and returns the extended slice. An id or type is cut at its first line end,
// and an id with a NUL is left out, because the format has no way to carry them.
func Append(dst []byte, e Event) []byte {
	if id := oneLine(e.ID); id != "" && !strings.ContainsRune(id, 0) {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	if t := oneLine(e.Type); t != "" {
		dst = append(append(append(dst, "event: "...), t...), '\n')
	}
	for rest, more := e.Data, true; more; {
		var line string
		line, rest, more = cutLine(rest)
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}

// AppendComment appends a comment, which readers ignore: a heartbeat that moves
// no reader's position. The text is cut at its first line end.
func AppendComment(dst []byte, text string) []byte {
	return append(append(append(dst, ": "...), oneLine(text)...), "\n\n"...)
}

func oneLine(s string) string {
	line, _, _ := cutLine(s)
	return line
}

// cutLine splits s after its first line, which ends with "\r\n", "\n" or "\r".
func cutLine(s string) (line, rest string, more bool) {
	i := strings.IndexAny(s, "\r\n")
	if i < 0 {
		return s, "", false
	}
	if strings.HasPrefix(s[i:], "\r\n") {
		return s[:i], s[i+2:], true
	}
	return s[:i], s[i+1:], true
}
