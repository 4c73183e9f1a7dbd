//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refusedStart starts a process that must end by itself, with the exit code and
// one line that holds the words.
func refusedStart(t *testing.T, code int, l launch, words ...string) {
	t.Helper()
	p, stdout := spawn(t, "refused", l)
	drained := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, stdout); drained <- err }()
	if got := p.exited(20 * time.Second); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	said := strings.TrimSpace(p.log.String())
	if strings.Count(said, "\n") != 0 || said == "" {
		t.Errorf("it should say why in one line, and said:\n%s", said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("it does not mention %q: %s", word, said)
		}
	}
}

func TestAStartThatCannotWorkSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	here := func(t *testing.T, args ...string) launch {
		return launch{args: append([]string{"--listen", "127.0.0.1:0", "--database", "sqlite:" + filepath.Join(t.TempDir(), "x.db")}, args...)}
	}
	t.Run("the port is in use", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		refusedStart(t, 1, here(t, "--listen", l.Addr().String()), l.Addr().String(), "in use")
	})
	for _, c := range []struct {
		name  string
		args  []string
		words []string
	}{
		{"a lease that is no duration", []string{"--lease", "soon"}, []string{"--lease"}},
		{"renewals rarer than the lease allows", []string{"--lease", "3s", "--renew", "2s"}, []string{"--renew"}},
		{"a model nobody knows", []string{"--model", "oracle"}, []string{"--model"}},
		{"two faults at once", []string{"--workers", "-3", "--on-unknown-outcome", "hope"}, []string{"--workers", "--on-unknown-outcome"}},
		{"tasks kept shorter than keys", []string{"--key-retention", "48h", "--task-retention", "24h"}, []string{"--task-retention"}},
		{"a flag that does not exist", []string{"--leese", "3s"}, []string{"leese"}},
		{"an address that is not loopback", []string{"--listen", "0.0.0.0:0"}, []string{"--listen"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refusedStart(t, 2, here(t, c.args...), c.words...)
		})
	}
	t.Run("a directory that is not there", func(t *testing.T) {
		t.Parallel()
		refusedStart(t, 1, here(t, "--database", "sqlite:"+filepath.Join(t.TempDir(), "no", "x.db")), "no/x.db", "directory")
	})
	t.Run("a file that is no database", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "letter.db")
		letter := []byte(strings.Repeat("Dear reader, this is no database. ", 300))
		if err := os.WriteFile(file, letter, 0o600); err != nil {
			t.Fatal(err)
		}
		refusedStart(t, 1, here(t, "--database", "sqlite:"+file), "letter.db", "no SQLite database")
		if left, err := os.ReadFile(file); err != nil || !bytes.Equal(left, letter) {
			t.Errorf("the file was changed: %v", err)
		}
	})
}

// openToOthers lets another user reach the test's own folders.
func openToOthers(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		for dir := p; dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAReadOnlyFileIsRefused: as root nothing is read-only, so the process then
// runs as another user.
func TestAReadOnlyFileIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(everything).kill()
	l := launch{args: w.flags}
	if os.Geteuid() == 0 {
		openToOthers(t, w.dir, binaries.dir)
		l.user = &syscall.Credential{Uid: 65534, Gid: 65534}
	} else if err := os.Chmod(w.file, 0o400); err != nil {
		t.Fatal(err)
	}
	refusedStart(t, 1, l, "onereply.db", "writable")
}

// TestADamagedFileIsNotServed: pages in the middle of the file are overwritten.
// Whatever the service can still say, it must not be a wrong answer.
func TestADamagedFileIsNotServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(everything)
	w.api(p).awaitEnd(w.ask(p, "q", nil).ID)
	p.signal(syscall.SIGTERM)
	if code := p.exited(15 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	raw, err := os.ReadFile(w.file)
	if err != nil || len(raw) < 10*4096 {
		t.Fatalf("after a clean end the file has %d bytes: %v", len(raw), err)
	}
	for i := 4096; i < len(raw); i++ {
		raw[i] ^= 0x5a
	}
	if err := os.WriteFile(w.file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	refusedStart(t, 1, launch{args: w.flags}, "onereply.db", "damaged")
}

// TestAnotherProgramLocksTheFile: for a while nothing can be written. Short
// waits are waited for; a long one is told as 503 with Retry-After; reading goes
// on; nothing is lost and the same key works afterwards.
func TestAnotherProgramLocksTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.troubled = true
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	release := w.lockFile()
	time.AfterFunc(time.Second, release)
	patient := w.send(a, conversation, "k1", "patient", nil) // waits for the lock
	w.expect(p, patient.ID, want{status: "completed", text: "answer to patient", version: 1, attempts: 1, calls: 1, requests: 1})

	g := newGate()
	w.model.script("running", held(g, say("first")), say("second"))
	running := w.send(a, conversation, "k0", "running", nil)
	w.model.awaitAsked("running", 1)
	release = w.lockFile()
	began := time.Now()
	got, err := a.send(conversation, "k2", "refused", nil)
	if err != nil || got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Fatalf("under a long lock: %d Retry-After %q %v %s", got.status, got.header.Get("Retry-After"), err, got.body)
	}
	t.Logf("told 503 after %v", time.Since(began).Round(time.Millisecond))
	if now := a.task(running.ID); now.Status != "running" {
		t.Errorf("while the file is locked the running task reads as %s", now)
	}
	g.open()
	release()
	refused := w.send(a, conversation, "k2", "refused", nil)
	w.expect(p, refused.ID, want{status: "completed", text: "answer to refused", version: 1, attempts: 1, calls: 1, requests: 1})
	w.expect(p, running.ID, twoCalls) // its lease could not be renewed
	w.settle(p)
}

// untilFull sends messages until one is refused for lack of room, and returns
// the key and text of that one.
func untilFull(w *world, a *api, conversation string) (key, text string) {
	w.t.Helper()
	for i := range 400 {
		key, text = fmt.Sprintf("k%d", i), fmt.Sprintf("%d %s", i, strings.Repeat("room ", 4000))
		got, err := a.send(conversation, key, text, nil)
		if err != nil {
			w.t.Fatalf("message %d: %v", i, err)
		}
		if got.status == http.StatusServiceUnavailable {
			if got.header.Get("Retry-After") == "" || got.header.Get("Content-Type") != "application/problem+json" {
				w.t.Errorf("a full disk is told as %d %v", got.status, got.header)
			}
			var problem struct{ Type string }
			if err := json.Unmarshal(got.body, &problem); err != nil || !strings.HasSuffix(problem.Type, "/unavailable") {
				w.t.Errorf("the problem is %s: %v", got.body, err)
			}
			w.t.Logf("full after %d messages", i)
			return key, text
		}
		w.note(key, text, got)
	}
	w.t.Fatal("the disk never became full")
	return "", ""
}

// TestTheDiskIsFull: on a small disk of its own. When there is room again, the
// refused press succeeds under its key and everything that waited completes.
func TestTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.troubled = true
	disk := filepath.Join(w.dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: a full disk was not tried, only a file-size limit: mounting one needs root: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w.file = filepath.Join(disk, "onereply.db")
	w.flags = append(w.flags, "--database", "sqlite:"+w.file, "--max-attempts", "1000", "--max-calls", "1000") // what cannot be saved is paid for again
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	key, text := untilFull(w, a, conversation)
	a.messages(conversation) // reading goes on
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	w.send(a, conversation, key, text, nil)
	w.settle(p)
	if n := w.ledger().count("SELECT count(*) FROM tasks WHERE status <> 'completed'"); n != 0 {
		t.Errorf("%d tasks did not complete once there was room again", n)
	}
}

// TestTheFileMayNotGrow: a limit on the size of files does the same without
// root; a process without the limit picks up what is left.
func TestTheFileMayNotGrow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.troubled = true
	w.flags = append(w.flags, "--max-attempts", "1000", "--max-calls", "1000")
	p := startProcess(t, "limited", launch{
		wrap: []string{"sh", "-c", `ulimit -f 2048; exec "$0" "$@"`}, // blocks of 512 bytes, or of 1024
		args: w.flags,
	})
	w.front = p
	a := w.api(p)
	conversation := a.conversation()
	key, text := untilFull(w, a, conversation)
	a.messages(conversation)
	p.kill()
	p = w.start(everything)
	w.send(w.api(p), conversation, key, text, nil)
	w.settle(p)
	if n := w.ledger().count("SELECT count(*) FROM tasks WHERE status <> 'completed'"); n != 0 {
		t.Errorf("%d tasks did not complete once there was room again", n)
	}
}
