//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one running onereply.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	url  string // of its API; empty without that role
	log  *output
	done chan struct{} // closed when it has ended
	rest []*process    // what was started with it, to play the other roles
}

// output keeps what a process says, from whichever goroutine copies it.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launch is how to start a process.
type launch struct {
	crashPoints string   // ONEREPLY_CRASHPOINT; set: the binary with crash points
	args        []string // after "serve"
	wrap        []string // a command line that the binary's is appended to
	binary      string   // empty: the one that ships, or the one with crash points
	env         []string // beside what every process gets
	user        *syscall.Credential
}

// spawn starts a process and does not wait until it is ready.
func spawn(t *testing.T, name string, l launch) (*process, io.Reader) {
	t.Helper()
	program := l.binary
	if program == "" {
		program = binary(t, l.crashPoints != "")
	}
	argv := append(append([]string{}, l.wrap...), program)
	argv = append(append(argv, "serve"), l.args...)
	p := &process{t: t, name: name, cmd: exec.Command(argv[0], argv[1:]...), log: &output{}, done: make(chan struct{})}
	p.cmd.Env = []string{"PATH=/usr/bin:/bin", "ONEREPLY_CRASHPOINT=" + l.crashPoints, "HOME=" + t.TempDir()}
	p.cmd.Env = append(p.cmd.Env, l.env...)
	p.cmd.Stderr = p.log
	if l.user != nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: l.user}
	}
	stdout, w := io.Pipe()
	p.cmd.Stdout = w
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		// Wait's error is the exit code, which ProcessState keeps.
		err := p.cmd.Wait()
		w.CloseWithError(io.EOF)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Errorf("waiting for %s: %v", name, err)
		}
		close(p.done)
	}()
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("what %s said:\n%s", name, tail(p.log.String(), 6000))
		}
	})
	return p, stdout
}

// startProcess starts a process and waits until it says that it is ready.
func startProcess(t *testing.T, name string, l launch) *process {
	t.Helper()
	p, stdout := spawn(t, name, l)
	p.awaitReady(stdout)
	return p
}

// awaitReady waits until the process says that it is ready.
func (p *process) awaitReady(stdout io.Reader) {
	p.t.Helper()
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for said := false; lines.Scan(); {
			_, url, listening := strings.Cut(lines.Text(), "listening on ")
			if !said && (listening || strings.Contains(lines.Text(), "onereply plays ")) {
				said = true
				ready <- url
			}
		}
		close(ready)
	}()
	select {
	case url, ok := <-ready:
		if !ok {
			<-p.done
			p.t.Fatalf("%s ended before it was ready: %v\n%s", p.name, p.cmd.ProcessState, p.log)
		}
		p.url = url
	case <-time.After(30 * time.Second):
		p.t.Fatalf("%s was not ready within 30s\n%s", p.name, p.log)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v: %v", p.name, s, err)
	}
}

// kill ends the process with SIGKILL, as a power cut would, and waits for that.
// What was started with it is killed too.
func (p *process) kill() {
	p.t.Helper()
	for _, other := range p.rest {
		other.kill()
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// freeze stops the process in its tracks and returns when all of it has stopped:
// the signal alone leaves its threads a moment.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	eventually(p.t, 10*time.Second, p.name+" has stopped", func() bool {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			p.t.Fatalf("waiting until %s has stopped: %v", p.name, err)
		}
		return pid == p.cmd.Process.Pid && status.Stopped()
	})
}

// thaw lets a frozen process go on as if nothing had happened.
func (p *process) thaw() { p.t.Helper(); p.signal(syscall.SIGCONT) }

// died waits for a process that a crash point is about to end.
func (p *process) died() {
	p.t.Helper()
	p.exited(20 * time.Second)
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		p.t.Fatalf("%s ended with %v, want SIGKILL", p.name, p.cmd.ProcessState)
	}
}

// exited waits for the end and gives the exit code, -1 after a signal.
func (p *process) exited(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		p.t.Fatalf("%s did not end within %v", p.name, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// end makes sure that the process is gone.
func (p *process) end() {
	select {
	case <-p.done:
		return
	default:
	}
	if err := p.cmd.Process.Kill(); err != nil && !strings.Contains(err.Error(), "already finished") {
		p.t.Errorf("ending %s: %v", p.name, err)
	}
	<-p.done
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// eventually asks every few milliseconds until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	if !soon(within, holds) {
		t.Fatalf("not within %v: %s", within, what)
	}
}

func soon(within time.Duration, holds func() bool) bool {
	end := time.NewTimer(within)
	defer end.Stop()
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			return holds()
		}
	}
	return true
}
