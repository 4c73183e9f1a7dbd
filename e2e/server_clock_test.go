//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// skew puts a running process's clock off by so much. Go reads the clock through
// the page of code that the kernel maps into every process; the process gets a
// copy of it with a function that adds the seconds. Its monotonic clock, and with
// it every timer, goes on as it was.
func (p *process) skew(by time.Duration) {
	p.t.Helper()
	if by == 0 {
		return
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		p.t.Skipf("SKIPPED: how to put a process's clock off is known for linux/amd64 only, not for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	for range 20 {
		p.freeze()
		done, err := replaceClock(p.cmd.Process.Pid, by)
		p.thaw()
		if err != nil {
			p.t.Fatalf("putting the clock of %s off: %v", p.name, err)
		}
		if done {
			p.checkSkew(by)
			return
		}
	}
	p.t.Fatalf("%s was reading its clock whenever it was stopped", p.name)
}

// checkSkew asks the process for the time.
func (p *process) checkSkew(by time.Duration) {
	p.t.Helper()
	got := newAPI(p.t, p.url).must(http.StatusOK, "GET", "/healthz", "", nil)
	at, err := time.Parse(http.TimeFormat, got.header.Get("Date"))
	if err != nil {
		p.t.Fatal(err)
	}
	if off := time.Until(at) - by; off < -20*time.Second || off > 20*time.Second {
		p.t.Fatalf("%s says it is %v, which is not %v off", p.name, at, by)
	}
}

// clockCode is clock_gettime(id, to) for linux/amd64: the system call, and for
// the wall clock, whose id is 0, the seconds added.
func clockCode(by time.Duration) []byte {
	seconds := uint32(int32(by / time.Second))
	return []byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, 228
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 0x07, // jnz to ret
		0x48, 0x81, 0x06, byte(seconds), byte(seconds >> 8), byte(seconds >> 16), byte(seconds >> 24), // add qword [rsi], seconds
		0xc3, // ret
	}
}

// replaceClock writes the function into a stopped process, unless one of its
// threads was stopped in the code that it replaces.
func replaceClock(pid int, by time.Duration) (done bool, err error) {
	start, end, err := kernelCode(pid)
	if err != nil {
		return false, err
	}
	if busy, err := threadWithin(pid, start, end); busy || err != nil {
		return false, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	image := make([]byte, end-start)
	if _, err := memory.ReadAt(image, start); err != nil {
		return false, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return false, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return false, err
	}
	code := clockCode(by)
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(len(code)) {
			_, err := memory.WriteAt(code, start+int64(s.Value))
			return err == nil, err
		}
	}
	return false, errors.New("the kernel's page has no clock_gettime")
}

// kernelCode is where the kernel's page of code lies in a process.
func kernelCode(pid int) (start, end int64, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "[vdso]") {
			_, err := fmt.Sscanf(lines.Text(), "%x-%x", &start, &end)
			return start, end, err
		}
	}
	return 0, 0, errors.New("the process has no page of the kernel's")
}

// threadWithin reports whether a thread of a stopped process is inside a range.
func threadWithin(pid int, start, end int64) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		raw, err := os.ReadFile(thread)
		if err != nil {
			return false, err
		}
		fields := strings.Fields(string(raw))
		if len(fields) < 2 {
			return true, nil // it is still running
		}
		at, err := strconv.ParseUint(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64)
		if err != nil {
			return false, err
		}
		if at >= uint64(start) && at < uint64(end) {
			return true, nil
		}
	}
	return false, nil
}

// wrongClocks: 1. a worker is in a long call while another one looks for work,
// 2. the first is killed in its next call. Whatever their clocks say, the lease
// is judged by the server's: no takeover while it is renewed, and one takeover
// when it is over (P5).
func wrongClocks(w *world, runner, watcher time.Duration) {
	p := w.start("api,sweep")
	worker := func(off time.Duration) *process {
		started := w.start("api,work")
		started.skew(off)
		w.mu.Lock()
		w.front = p // streams are read where nothing is killed
		w.mu.Unlock()
		return started
	}
	g := newGate()
	w.model.script("long", held(g, say("long")))
	w.model.script("q", hang("half an "), say("second"))
	doomed := worker(runner)
	long := w.ask(p, "long", nil)
	w.model.awaitAsked("long", 1)
	other := worker(watcher)
	l := w.ledger()
	eventually(w.t, 30*time.Second, "the lease was renewed for three times its length", func() bool {
		return l.count("SELECT renewals FROM attempts WHERE task_id = ? AND version = 1", long.ID) >= int(3*lease/renew)
	})
	g.open()
	w.expect(p, long.ID, want{status: "completed", text: "long", version: 1, attempts: 1, calls: 1, requests: 1})
	other.kill()

	task := w.ask(p, "q", nil)
	w.model.awaitAsked("q", 1)
	worker(watcher)
	doomed.kill()
	leaseEnd := l.leaseUntil(task.ID)
	end := w.expect(p, task.ID, twoCalls)
	late := end.Attempts[1].StartedAt.Sub(leaseEnd)
	if late < 0 || late > sweep+3*time.Second {
		w.t.Errorf("taken over %v after the lease was over", late)
	}
	w.t.Logf("taken over %v after the lease was over", late)
	w.settle(p)
}

const off = 2 * time.Minute

// TestCase15WorkersWithWrongClocks: two minutes off, in either direction.
func TestCase15WorkersWithWrongClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		runner, watcher time.Duration
	}{
		{"the one that looks for work is ahead", 0, off},
		{"the one that works is behind", -off, 0},
		{"the one that works is behind and the other ahead", -off, off},
		{"the one that works is ahead and the other behind", off, -off},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wrongClocks(newServerWorld(t), c.runner, c.watcher)
		})
	}
}

// TestCase15ServerWithAWrongClock: the server's clock is off against everybody
// else's.
func TestCase15ServerWithAWrongClock(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		if required("postgres") {
			t.Fatal("libfaketime is not installed")
		}
		t.Skip("SKIPPED: a server with a wrong clock needs libfaketime")
	}
	for name, by := range map[string]time.Duration{"ahead": off, "behind": -off} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clusterIn(t, []string{"LD_PRELOAD=" + found[0], fmt.Sprintf("FAKETIME=%+ds", int(by.Seconds())), "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"})
			w := newClusterWorld(t, c)
			db := w.server.connect("postgres", "")
			defer db.Close()
			var at time.Time
			if err := db.QueryRowContext(t.Context(), "SELECT clock_timestamp()").Scan(&at); err != nil {
				t.Fatal(err)
			}
			if wrong := time.Until(at) - by; wrong < -20*time.Second || wrong > 20*time.Second {
				t.Fatalf("the server says it is %v, which is not %v off", at, by)
			}
			wrongClocks(w, 0, 0)
		})
	}
}
