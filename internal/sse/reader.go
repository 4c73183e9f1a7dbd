package sse

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrTooLong: an event, or one line of it, is larger than the reader's limit.
var ErrTooLong = errors.New("event too long")

// Reader takes a stream apart. It is for one goroutine.
type Reader struct {
	in    *bufio.Reader
	limit int
	id    string
	begun bool // the byte order mark, if any, is behind us
	cr    bool // the last line ended with "\r": a "\n" that follows belongs to it
}

// NewReader reads events from r, each at most limit bytes of lines.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 4096), limit: limit}
}

// LastID returns the last event id the stream has set, also by an event that
// carried no data. It is what a reconnecting reader sends as Last-Event-ID.
func (r *Reader) LastID() string { return r.id }

// Next returns the next event that has data. Comments, the retry field and
// fields it does not know are passed over, as the standard asks. At the end of
// the stream it returns io.EOF, and an event that was not finished by a blank
// line is dropped; an event above the limit is an error matching ErrTooLong,
// after which the reader cannot go on.
func (r *Reader) Next() (Event, error) {
	var (
		event Event
		data  strings.Builder
		some  bool
		size  int
	)
	for {
		line, err := r.line(r.limit - size)
		if err != nil {
			return Event{}, err
		}
		size += len(line)
		line = strings.ToValidUTF8(line, "\ufffd")
		if line == "" {
			if !some {
				event, size = Event{}, 0
				continue
			}
			event.ID = r.id
			event.Data = data.String()
			return event, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			if !strings.ContainsRune(value, 0) {
				r.id = value
			}
		case "event":
			event.Type = value
		case "data":
			if some {
				data.WriteByte('\n')
			}
			some = true
			data.WriteString(value)
		}
	}
}

// line returns the next line without its end. A line that the stream's end cut
// off is no line.
func (r *Reader) line(limit int) (string, error) {
	var b []byte
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' && r.cr && len(b) == 0 {
			r.cr = false
			continue
		}
		r.cr = c == '\r'
		if c == '\n' || c == '\r' {
			break
		}
		if len(b) >= limit {
			return "", fmt.Errorf("reading events: more than %d bytes: %w", r.limit, ErrTooLong)
		}
		b = append(b, c)
	}
	line := string(b)
	if !r.begun {
		r.begun = true
		line = strings.TrimPrefix(line, "\ufeff")
	}
	return line, nil
}
