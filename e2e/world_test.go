//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The timings of these tests. A lease is short enough to be waited for and long
// enough for a busy machine.
const (
	lease = 2 * time.Second
	renew = 500 * time.Millisecond
	sweep = time.Second
)

// world is one test's service: a file or a database on a server, a scripted
// model, and the processes that share it. It keeps its own account of what was
// promised to it, which settle compares with what is stored.
type world struct {
	t      *testing.T
	dir    string
	file   string
	server *server // nil: the rows are in the file
	model  *model
	flags  []string // for every process started from now on
	env    []string // likewise

	mu        sync.Mutex
	front     *process          // whose API the followers use
	accepted  map[string]string // key → text of every message that was answered 2xx
	tasks     map[string]string // task → text
	followers []*follower
	seenEnds  map[string]string
	deleted   int // user messages that went with their conversation
	processes []*process
	troubled  bool // its processes may log errors and answer 5xx
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, dir: dir, file: filepath.Join(dir, "onereply.db"), model: startModel(t),
		accepted: map[string]string{}, tasks: map[string]string{}, seenEnds: map[string]string{},
	}
	w.flags = []string{
		"--listen", "127.0.0.1:0", "--database", "sqlite:" + w.file, "--model", w.model.flag(),
		"--lease", lease.String(), "--renew", renew.String(), "--sweep", sweep.String(),
		"--backoff-base", "50ms", "--backoff-max", "200ms", "--call-timeout", "60s", "--model-gate=false", "--drain", "5s", "--log-level", "debug",
	}
	return w
}

// start starts a process with the roles and further flags. On a server
// everything is three processes, of which it returns the API.
func (w *world) start(roles string, flags ...string) *process {
	w.t.Helper()
	return w.startAt("", roles, flags...)
}

// startAt starts a process that meets crash points.
func (w *world) startAt(points, roles string, flags ...string) *process {
	w.t.Helper()
	if w.server != nil && roles == everything {
		p := w.startAt(points, "api", flags...)
		p.rest = []*process{w.startAt(points, "work", flags...), w.startAt("", "dispatch,sweep", flags...)}
		return p
	}
	p := startProcess(w.t, roles, launch{
		crashPoints: points, args: slices.Concat(w.flags, []string{"--roles", roles}, flags), env: w.env,
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	if p.url != "" {
		w.front = p
	}
	return p
}

// calm gives the processes of a test that is not about takeovers a lease that a
// busy machine does not let run out.
func (w *world) calm() {
	w.flags = append(w.flags, "--lease", "20s", "--renew", "2s")
}

const everything = "api,dispatch,work,sweep"

// oneProcess is everything in one process, on a server too.
const oneProcess = "sweep,work,dispatch,api"

// api speaks to a process.
func (w *world) api(p *process) *api { return newAPI(w.t, p.url) }

func (w *world) frontURL() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.front == nil {
		return ""
	}
	return w.front.url
}

// note records an answer to a press of Send: what was answered 2xx is never lost (P2).
func (w *world) note(key, text string, a answer) sent {
	w.t.Helper()
	if a.status != http.StatusAccepted && a.status != http.StatusOK {
		w.t.Fatalf("sending %q under %s: %d %s", text, key, a.status, a.body)
	}
	s := a.sent(w.t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, known := w.tasks[s.Task.ID]; known && before != text {
		w.t.Fatalf("task %s stands for %q and %q", s.Task.ID, before, text)
	}
	w.accepted[key], w.tasks[s.Task.ID] = text, text
	return s
}

// send presses Send once, which has to create a task, and follows its stream.
func (w *world) send(a *api, conversation, key, text string, p policy) taskJSON {
	w.t.Helper()
	got, err := a.send(conversation, key, text, p)
	if err != nil {
		w.t.Fatalf("sending %q: %v", text, err)
	}
	if got.status != http.StatusAccepted || got.replayed() {
		w.t.Fatalf("sending %q: %d replayed=%v %s", text, got.status, got.replayed(), got.body)
	}
	s := w.note(key, text, got)
	w.follow(s.Task.ID)
	return s.Task
}

// ask is send in a conversation of its own, with the text as the key too.
func (w *world) ask(p *process, text string, how policy) taskJSON {
	w.t.Helper()
	a := w.api(p)
	return w.send(a, a.conversation(), "key-of-"+text, text, how)
}

// follow reads the task's stream until the test settles.
func (w *world) follow(id string) *follower {
	f := follow(w.t.Context(), id, w.frontURL)
	w.t.Cleanup(f.stop)
	w.mu.Lock()
	w.followers = append(w.followers, f)
	w.mu.Unlock()
	return f
}

// replay presses Send again with what was sent before, and has to get its task.
func (w *world) replay(a *api, conversation, key, text string, p policy, first string) taskJSON {
	w.t.Helper()
	got, err := a.send(conversation, key, text, p)
	if err != nil {
		w.t.Fatalf("sending %q again: %v", text, err)
	}
	if got.status != http.StatusOK || !got.replayed() {
		w.t.Errorf("sending %q again: %d replayed=%v, want 200 and replayed", text, got.status, got.replayed())
	}
	s := w.note(key, text, got)
	if s.Task.ID != first {
		w.t.Errorf("sending %q again gave task %s, want %s", text, s.Task.ID, first)
	}
	return s.Task
}

// ledger opens what is stored behind the service's back.
func (w *world) ledger() *ledger {
	w.t.Helper()
	if w.server != nil {
		return w.server.ledger()
	}
	return openLedger(w.t, w.file)
}

// remember notes how tasks have ended so far; settle compares.
func (w *world) remember(l *ledger) {
	w.t.Helper()
	for id, end := range l.ends() {
		if before, known := w.seenEnds[id]; known && before != end {
			w.t.Errorf("an ended task changed:\n%s\n%s", before, end)
		}
		w.seenEnds[id] = end
	}
}

// want is what a test expects of one task in the end. Requests are those that
// reached the model; calls are those counted.
type want struct {
	status, reason, code, text string
	version                    int64
	attempts, calls, requests  int
}

// expect compares a task's end, exactly.
func (w *world) expect(p *process, id string, is want) taskJSON {
	w.t.Helper()
	got := w.api(p).awaitEnd(id)
	w.remember(w.ledger())
	found := want{
		status: got.Status, reason: got.Reason, code: got.code(), text: got.text(), version: got.Version,
		attempts: got.Budget.Attempts.Used, calls: got.Budget.Calls.Used, requests: len(w.model.asked(w.textOf(id))),
	}
	if found != is {
		w.t.Errorf("task %s ended as\n%+v, want\n%+v", id, found, is)
	}
	return got
}

func (w *world) textOf(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tasks[id]
}

// settle waits until nothing is in flight and checks everything that must hold
// whatever happened. The process serves the API.
func (w *world) settle(p *process) {
	w.t.Helper()
	l := w.ledger()
	eventually(w.t, 40*time.Second, "nothing is in flight", func() bool { return l.inFlight() == 0 })
	w.remember(l)
	l.balance()
	w.settleCounts(l)
	a := w.api(p)
	w.mu.Lock()
	followers, tasks := w.followers, w.tasks
	w.mu.Unlock()
	for _, f := range followers {
		if err := f.verdict(a.task(f.task)); err != nil {
			w.t.Errorf("stream of task %s: %v", f.task, err)
		}
	}
	for id := range tasks {
		if t := a.task(id); !t.ended() {
			w.t.Errorf("task %s is %s", id, t.Status)
		}
	}
	w.remember(l)
	if w.server != nil {
		w.server.settleTransactions()
	}
	w.settleLogs()
}

// settleLogs looks for errors, 5xx answers among them, that no test expects.
func (w *world) settleLogs() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "level=ERROR") && !w.troubled || strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") {
				w.t.Errorf("%s logged: %s", p.name, line)
			}
		}
	}
}

// settleCounts compares the file with the test's own account and the model's record.
func (w *world) settleCounts(l *ledger) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := l.count("SELECT count(*) FROM messages WHERE role = 'user'"); n != len(w.accepted)-w.deleted {
		w.t.Errorf("%d user messages for %d distinct keys (%d deleted)", n, len(w.accepted), w.deleted)
	}
	counted := map[string]int{}
	for id, text := range w.tasks {
		counted[text] += l.count("SELECT calls_used FROM tasks WHERE id = ?", id)
	}
	for text, calls := range counted {
		if n := len(w.model.asked(text)); n > calls {
			w.t.Errorf("the model got %d requests for %q and %d calls were counted", n, text, calls)
		}
	}
	if all := l.count("SELECT sum(calls_used) FROM tasks"); w.model.sim.Total() > all {
		w.t.Errorf("the model got %d requests and %d calls were counted", w.model.sim.Total(), all)
	}
}

// plant changes what is stored as a restore or an operator would.
func (w *world) plant(query string, args ...any) {
	w.t.Helper()
	var db *sql.DB
	var err error
	if w.server != nil {
		db, query = w.server.connect(w.server.database, "&search_path=onereply"), numberedPlaces(query)
	} else if db, err = sql.Open("sqlite", "file:"+w.file+"?_pragma=busy_timeout(10000)"); err != nil {
		w.t.Fatal(err)
	}
	_, err = db.ExecContext(context.Background(), query, args...)
	if closing := db.Close(); err == nil {
		err = closing
	}
	if err != nil {
		w.t.Fatal(fmt.Errorf("%s: %w", query, err))
	}
}

// hold keeps a task from being written, as another program would: by its row on
// a server, by the lock of the whole file elsewhere.
func (w *world) hold(id string) (release func()) {
	w.t.Helper()
	if w.server != nil {
		return w.server.holdRow(id)
	}
	return w.lockFile()
}

// lockFile takes the file's write lock, as another program would, and returns
// what lets it go.
func (w *world) lockFile() (release func()) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.file+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		w.t.Fatal(err)
	}
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	released := false
	release = func() {
		if released {
			return
		}
		released = true
		if err := tx.Rollback(); err != nil {
			w.t.Error(err)
		}
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(release)
	return release
}

// locked reports whether some process is inside a transaction that writes, and
// not only for the moment of a short write.
func (w *world) locked() bool {
	w.t.Helper()
	if w.server != nil {
		return w.server.writing()
	}
	db, err := sql.Open("sqlite", "file:"+w.file+"?_txlock=immediate&_pragma=busy_timeout(0)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	return !soon(60*time.Millisecond, func() bool {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			return false
		}
		if err := tx.Rollback(); err != nil {
			w.t.Error(err)
		}
		return true
	})
}

// awaitLocked waits until some process is inside a transaction that writes.
func (w *world) awaitLocked() {
	w.t.Helper()
	eventually(w.t, 10*time.Second, "a transaction is open for a while", w.locked)
}

// freezeInCall stops a process in its tracks while it waits for the model. One
// that is caught inside a write transaction would hold the file for everybody,
// which is another story (P15): it goes on for a moment and is stopped again.
func (w *world) freezeInCall(p *process) {
	w.t.Helper()
	eventually(w.t, 10*time.Second, p.name+" is frozen outside a transaction", func() bool {
		p.freeze()
		if !w.locked() {
			return true
		}
		p.thaw()
		return false
	})
}
