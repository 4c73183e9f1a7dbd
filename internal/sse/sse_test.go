package sse

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   Event
		want string
	}{
		{"an event with all members", Event{"1.2", "delta", `{"text":"a"}`}, "id: 1.2\nevent: delta\ndata: {\"text\":\"a\"}\n\n"},
		{"no id and no type leave their lines out", Event{Data: "x"}, "data: x\n\n"},
		{"an empty payload is still an event", Event{Type: "ping"}, "event: ping\ndata: \n\n"},
		{"every kind of line end becomes a data line", Event{Data: "a\nb\r\nc\rd\n"}, "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"},
		{"an id cannot smuggle a line", Event{ID: "1\ndata: evil", Data: "x"}, "id: 1\ndata: x\n\n"},
		{"an id with a NUL is left out", Event{ID: "1\x00", Data: "x"}, "data: x\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, string(Append(nil, c.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := string(AppendComment([]byte("a"), "beat\ndata: x")); got != "a: beat\n\n" {
		t.Errorf("comment: %q", got)
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []Event
		last     string
	}{
		{"an event", "id: 1\nevent: delta\ndata: x\n\n", []Event{{"1", "delta", "x"}}, "1"},
		{"the id stays until another is set", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []Event{{"1", "", "a"}, {"1", "", "b"}, {"", "", "c"}}, ""},
		{"comments, retry and unknown fields are passed over", ": beat\n\nretry: 5\nfoo: bar\ndata: x\n\n", []Event{{"", "", "x"}}, ""},
		{"a comment between events does not touch the id", "id: 7\ndata: a\n\n: beat\n\ndata: b\n\n", []Event{{"7", "", "a"}, {"7", "", "b"}}, "7"},
		{"all three line ends", "data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\rdata: e\n\n", []Event{{"", "", "a\nb\nc"}, {"", "", "d"}, {"", "", "e"}}, ""},
		{"a byte order mark is dropped once", "\ufeffdata: x\n\n\ufeffdata: y\n\n", []Event{{"", "", "x"}}, ""},
		{"only one space after the colon is dropped", "data:  x\n\ndata:y\n\n", []Event{{"", "", " x"}, {"", "", "y"}}, ""},
		{"an event without data is none, but sets the id", "id: 3\nevent: a\n\n", nil, "3"},
		{"the type of an event without data is forgotten", "event: a\n\ndata: x\n\n", []Event{{"", "", "x"}}, ""},
		{"an unfinished event is dropped", "data: a\n\ndata: b\n", []Event{{"", "", "a"}}, ""},
		{"an id with a NUL is ignored", "id: 1\nid: 2\x00\ndata: a\n\n", []Event{{"1", "", "a"}}, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				r := NewReader(in, 1024)
				var got []Event
				for {
					e, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, e)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				if r.LastID() != c.last {
					t.Errorf("last id %q, want %q", r.LastID(), c.last)
				}
			}
		})
	}
}

func TestReaderLimit(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"data: " + strings.Repeat("x", 100) + "\n\n", strings.Repeat("data: xxxx\n", 10) + "\n"} {
		if _, err := NewReader(strings.NewReader(in), 64).Next(); !errors.Is(err, ErrTooLong) {
			t.Errorf("%.20q: %v, want ErrTooLong", in, err)
		}
	}
	// The limit is an event's, not the stream's.
	r := NewReader(strings.NewReader(strings.Repeat(": beat beat beat\n\ndata: x\n\n", 100)), 64)
	for i := range 100 {
		if _, err := r.Next(); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

func TestReaderHandsOnTheErrorOfItsSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := NewReader(iotest.ErrReader(broken), 64).Next(); !errors.Is(err, broken) {
		t.Errorf("%v, want the source's error", err)
	}
}

func FuzzWhatIsWrittenIsRead(f *testing.F) {
	f.Add("1.2", "delta", `{"text":"a"}`)
	f.Add("", "", "")
	f.Add("end", "completed", "a\nb\r\nc\rd")
	f.Add("a\x00b", "x\ny", "\ufeff: \xff")
	f.Add(" ", ":", " lead")
	f.Fuzz(func(t *testing.T, id, kind, data string) {
		wire := AppendComment(nil, id)
		wire = Append(wire, Event{ID: id, Type: kind, Data: data})
		r := NewReader(strings.NewReader(string(wire)), len(wire)+1)
		got, err := r.Next()
		if err != nil {
			t.Fatalf("%q: %v", wire, err)
		}
		want := strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data), "\ufffd")
		if lossy := strings.ToValidUTF8(data, "\ufffd") != data; !lossy && got.Data != want {
			t.Errorf("data %q, want %q", got.Data, want)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("a second event: %v", err)
		}
	})
}

func FuzzReaderEndsOnAnyBytes(f *testing.F) {
	f.Add("id: 1\nevent: delta\ndata: x\n\n")
	f.Add("\r\r\n\n:\n\ndata\n\n")
	f.Add("\ufeff\ufeffdata:\xff\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		r := NewReader(strings.NewReader(in), 256)
		for range len(in) + 1 {
			e, err := r.Next()
			if errors.Is(err, io.EOF) || errors.Is(err, ErrTooLong) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(e.ID+e.Type, "\r\n") || strings.ContainsRune(e.ID, 0) {
				t.Fatalf("impossible event %q", e)
			}
		}
		t.Fatal("more events than bytes")
	})
}
