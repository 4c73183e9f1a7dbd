package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

const week = 168 * time.Hour

// Rows 38 to 41: a key is remembered for its retention by the database's clock,
// and at least until its task has ended.
func TestHowLongAKeyIsRemembered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		ends  bool // the task has ended before the time passes
		after time.Duration
		purge bool
		body  string
		want  int
		code  string
		left  counts
	}{
		{"row 40: a second before the expiry it is a replay", true, week - time.Second, false, hello, 200, "", counts{1, 1, 1}},
		{"row 40: a second before the expiry another body is refused", true, week - time.Second, false, `{"text":"other"}`, 422, "idempotency_key_reused", counts{1, 1, 1}},
		{"row 40: a purge before the expiry changes nothing", true, week - time.Second, true, hello, 200, "", counts{1, 1, 1}},
		{"row 38: an expired key that nobody purged is new", true, week + time.Second, false, hello, 202, "", counts{2, 2, 1}},
		{"row 38: an expired key that was purged is new", true, week + time.Second, true, hello, 202, "", counts{2, 2, 1}},
		{"row 39: an expired key takes another body", true, week + time.Second, false, `{"text":"other"}`, 202, "", counts{2, 2, 1}},
		{"row 41: a key outlives its time while its task has not ended", false, 10 * week, false, hello, 200, "", counts{1, 1, 1}},
		{"row 41: also when a purge looks at it", false, 10 * week, true, hello, 200, "", counts{1, 1, 1}},
		{"row 41: and refuses another body", false, 10 * week, true, `{"text":"other"}`, 422, "idempotency_key_reused", counts{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			w := newWorld(t, setup{clock: clock})
			path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
			task := w.send(request{do: path, key: key("K"), body: hello}).doc.Task.ID
			if c.ends {
				if r := w.send(request{do: "POST /v1/tasks/" + task + "/cancel"}); r.status != 200 {
					t.Fatalf("cancel: %d", r.status)
				}
			}
			clock.move(c.after)
			if c.purge {
				if _, err := w.store.Purge(t.Context(), store.Purge{TaskRetention: 100 * week, Limit: 100}); err != nil {
					t.Fatal(err)
				}
			}
			r := w.send(request{do: path, key: key("K"), body: c.body})
			if r.status != c.want || r.code != c.code {
				t.Errorf("%d %s, want %d %s: %s", r.status, r.code, c.want, c.code, r.body)
			}
			if r.doc.Task != nil && (r.doc.Task.ID == task) != (c.want == 200) {
				t.Errorf("task %s, the first was %s", r.doc.Task.ID, task)
			}
			if left := w.counts(); left != c.left {
				t.Errorf("left %+v, want %+v", left, c.left)
			}
		})
	}
}

// Rows 51 and 49, as far as one process can tell: when the database is away
// nothing was written, and the same key is accepted later.
func TestTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	w := newWorld(t, setup{sqlite: func(o *sqlite.Options) {
		o.Faults = &sqlite.Faults{BeforeCommit: func() error {
			if broken.Load() {
				return fmt.Errorf("%w: the disk is gone", onereply.ErrUnavailable)
			}
			return nil
		}}
	}})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	broken.Store(true)
	for range 3 {
		r := w.send(request{do: path, key: key("K"), body: hello})
		if r.status != http.StatusServiceUnavailable || r.code != "unavailable" || r.header.Get("Retry-After") == "" {
			t.Errorf("%d %s, Retry-After %q: %s", r.status, r.code, r.header.Get("Retry-After"), r.body)
		}
		if left := w.counts(); left != (counts{}) {
			t.Errorf("left %+v", left)
		}
	}
	if r := w.send(request{do: "DELETE " + strings.TrimSuffix(strings.TrimPrefix(path, "POST "), "/messages")}); r.status != http.StatusServiceUnavailable {
		t.Errorf("delete: %d %s", r.status, r.body)
	}
	broken.Store(false)
	if r := w.send(request{do: path, key: key("K"), body: hello}); r.status != http.StatusAccepted {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
	if left := w.counts(); left != (counts{1, 1, 1}) {
		t.Errorf("left %+v", left)
	}
}

// Row 51: another program holds the file's write lock for longer than we wait.
func TestTheDatabaseIsLockedByAnotherProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sqlite: func(o *sqlite.Options) { o.BusyTimeout = 50 * time.Millisecond }})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	other, err := sqlite.Open(t.Context(), w.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := w.send(request{do: path, key: key("K"), body: hello})
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := w.send(request{do: "GET /readyz"}); r.status != http.StatusOK {
		t.Errorf("reading goes on: %d %s", r.status, r.body)
	}
	if err := errors.Join(lock.Rollback(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if r := w.send(request{do: path, key: key("K"), body: hello}); r.status != http.StatusAccepted {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
	if left := w.counts(); left != (counts{1, 1, 1}) {
		t.Errorf("left %+v", left)
	}
}

// A commit whose acknowledgement was lost is read, not done again (P11).
func TestALostCommitAcknowledgementMakesNoSecondTask(t *testing.T) {
	t.Parallel()
	var lose atomic.Int64
	w := newWorld(t, setup{sqlite: func(o *sqlite.Options) {
		o.Faults = &sqlite.Faults{AfterCommit: func() error {
			if lose.Add(-1) >= 0 {
				return errors.New("the line was cut")
			}
			return nil
		}}
	}})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	lose.Store(1)
	r := w.send(request{do: path, key: key("K"), body: hello})
	for r.status == http.StatusServiceUnavailable { // allowed, and then the same key tells
		r = w.send(request{do: path, key: key("K"), body: hello})
	}
	if r.status != http.StatusAccepted && r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.body)
	}
	if left := w.counts(); left != (counts{1, 1, 1}) {
		t.Errorf("left %+v", left)
	}
}

// Row 58 and the restart of case 1: the record is in the database.
func TestAReplayAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{workers: 2})
	c := w.conversation("alice")
	path := "POST /v1/conversations/" + c + "/messages"
	before := w.send(request{do: path, key: key("K"), body: hello})
	w.ended(before.doc.Task.ID)
	w.stop()
	w = newWorld(t, setup{workers: 2, path: w.path})
	after := w.send(request{do: path, key: key("K"), body: hello})
	if after.status != 200 || after.doc.Task.ID != before.doc.Task.ID || after.doc.Task.Status != "completed" || after.doc.Message.ID != before.doc.Message.ID {
		t.Errorf("%d %s", after.status, after.body)
	}
	if calls := w.model.calls.Load(); calls != 0 {
		t.Errorf("%d calls after the restart", calls)
	}
	if left := w.counts(); left != (counts{1, 2, 1}) {
		t.Errorf("left %+v", left)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for _, probe := range []string{"/healthz", "/readyz"} {
		if r := w.send(request{do: "GET " + probe, as: "mallory"}); r.status != 200 || r.body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: %d %s", probe, r.status, r.body)
		}
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	if r := w.send(request{do: "GET /healthz"}); r.status != 200 {
		t.Errorf("a process without a store lives: %d", r.status)
	}
	if r := w.send(request{do: "GET /readyz"}); r.status != 503 || r.code != "unavailable" {
		t.Errorf("a process without a store is not ready: %d %s", r.status, r.body)
	}
}
