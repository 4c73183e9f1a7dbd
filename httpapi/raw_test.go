package httpapi_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply/store/sqlite"
)

func (w *world) dial() net.Conn {
	w.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", w.server.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// raw sends bytes as they are and returns the answer.
func (w *world) raw(sent string) *http.Response {
	w.t.Helper()
	conn := w.dial()
	w.t.Cleanup(func() {
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			w.t.Error(err)
		}
	})
	if _, err := io.WriteString(conn, sent); err != nil {
		w.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// wire is a message as it goes over the wire, with more header lines.
func wire(conversation, lines string) string {
	return "POST /v1/conversations/" + conversation + "/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n" +
		"Content-Type: application/json\r\n" + lines + "\r\n" + hello
}

var length = "Content-Length: " + strconv.Itoa(len(hello)) + "\r\n"

// Rows 25, 26, 30, 55 and the chunked part of 52: what no ordinary client sends.
func TestOddRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	chunk := "Transfer-Encoding: chunked\r\nIdempotency-Key: K\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 16)
	for _, c := range []struct {
		name  string
		lines string
		want  int
		ours  bool // a problem, not the HTTP library's own words
		tasks int
	}{
		{"a key in an ordinary request", length + "Idempotency-Key: K\r\n", 202, false, 1},
		{"row 25: headers above the server's limit", length + "Idempotency-Key: " + strings.Repeat("k", 40<<10) + "\r\n", 431, false, 0},
		{"row 24: a long key below that limit", length + "Idempotency-Key: " + strings.Repeat("k", 4<<10) + "\r\n", 400, true, 0},
		{"row 26: a key that is no ASCII", length + "Idempotency-Key: schl\xc3\xbcssel\r\n", 400, true, 0},
		{"row 26: a key with a stray byte", length + "Idempotency-Key: a\xffb\r\n", 400, true, 0},
		{"row 26: a key with a control byte", length + "Idempotency-Key: a\x01b\r\n", 400, false, 0},
		{"row 26: a key with a NUL", length + "Idempotency-Key: a\x00b\r\n", 400, false, 0},
		{"row 29: two lines in different case", length + "idempotency-key: K\r\nIdempotency-Key: K\r\n", 400, true, 0},
		{"row 30: a folded line", length + "Idempotency-Key: a\r\n folded\r\n", 400, true, 0},
		{"row 55: two lengths that differ", length + "Content-Length: 3\r\nIdempotency-Key: K\r\n", 400, false, 0},
		{"row 52: a chunked body above the limit", chunk, 413, true, 0},
		{"row 52: a body announced above the limit is not asked for", "Content-Length: 99999\r\nExpect: 100-continue\r\nIdempotency-Key: K\r\n", 413, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			answer := w.raw(wire(w.conversation("alice"), c.lines))
			if answer.StatusCode != c.want {
				t.Errorf("%d, want %d", answer.StatusCode, c.want)
			}
			if ours := answer.Header.Get("Content-Type") == "application/problem+json"; ours != c.ours {
				t.Errorf("content type %q", answer.Header.Get("Content-Type"))
			}
			if left := w.counts(); left.tasks != c.tasks || left.keys != c.tasks {
				t.Errorf("left %+v, want %d tasks", left, c.tasks)
			}
		})
	}
}

// Row 50: a client that goes away, at any moment, has sent one message or none,
// and its retry makes it one.
func TestAClientThatHangsUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		part func(whole string) string
	}{
		{"in the headers", func(s string) string { return s[:60] }},
		{"in the body", func(s string) string { return s[:len(s)-3] }},
		{"after the request, before the answer", func(s string) string { return s }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			conversation := w.conversation("alice")
			for range 20 {
				conn := w.dial()
				if _, err := io.WriteString(conn, c.part(wire(conversation, length+"Idempotency-Key: K\r\n"))); err != nil {
					t.Fatal(err)
				}
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
			}
			r := w.send(request{do: "POST /v1/conversations/" + conversation + "/messages", key: key("K"), body: hello})
			if r.status != 202 && r.status != 200 {
				t.Errorf("the retry: %d %s", r.status, r.body)
			}
			if left := w.counts(); left != (counts{1, 1, 1}) {
				t.Errorf("left %+v", left)
			}
		})
	}
}

// The commit is detached from its client: who hangs up while it waits for the
// database has still sent.
func TestAHangUpDuringTheCommitDoesNotUndoIt(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}, 100), make(chan struct{})
	w := newWorld(t, setup{sqlite: stallCommits(began, goOn)})
	conversation := w.conversation("alice")
	<-began // of the conversation's own commit
	conn := w.dial()
	if _, err := io.WriteString(conn, wire(conversation, length+"Idempotency-Key: K\r\n")); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	deadline := time.Now().Add(30 * time.Second)
	for w.counts() != (counts{1, 1, 1}) && time.Now().Before(deadline) {
		<-time.After(5 * time.Millisecond)
	}
	if left := w.counts(); left != (counts{1, 1, 1}) {
		t.Errorf("left %+v", left)
	}
	if r := w.send(request{do: "POST /v1/conversations/" + conversation + "/messages", key: key("K"), body: hello}); r.status != 200 {
		t.Errorf("the retry: %d %s", r.status, r.body)
	}
}

// stallCommits makes every commit tell that it has begun, and the second one
// wait.
func stallCommits(began chan<- struct{}, goOn <-chan struct{}) func(*sqlite.Options) {
	var n atomic.Int64
	return func(o *sqlite.Options) {
		o.Faults = &sqlite.Faults{BeforeCommit: func() error {
			second := n.Add(1) == 2
			began <- struct{}{}
			if second {
				<-goOn
			}
			return nil
		}}
	}
}
