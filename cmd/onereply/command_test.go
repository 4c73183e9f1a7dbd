package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// result is what a command line gave.
type result struct {
	code           int
	stdout, stderr string
}

// execute runs a command line that ends by itself.
func execute(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	p := &process{stdout: &out, stderr: &err, lookup: func(name string) (string, bool) {
		v, found := env[name]
		return v, found
	}}
	code := p.run(t.Context(), args)
	return result{code, out.String(), err.String()}
}

// served is a service in this process.
type served struct {
	url  string
	stop func() int // drains and gives the exit code
}

// start serves on a free port until the test ends or stop is called.
func start(t *testing.T, file string, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var log bytes.Buffer
	p := &process{stdout: w, stderr: &log, lookup: func(string) (string, bool) { return "", false }}
	done := make(chan int, 1)
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--database", "sqlite:" + file, "--demo-delay", "1ms", "--log-level", "warn"}, args...)
	go func() {
		code := p.run(ctx, args)
		w.Close()
		done <- code
	}()
	address := make(chan string, 1)
	go func() {
		if _, err := io.Copy(io.Discard, &lineWatch{r: r, address: address}); err != nil {
			t.Error(err)
		}
	}()
	s := &served{}
	stopped := -1
	s.stop = func() int {
		cancel()
		if stopped < 0 {
			stopped = <-done
		}
		return stopped
	}
	select {
	case s.url = <-address:
	case code := <-done:
		stopped = code
		t.Fatalf("serve ended with %d: %s", code, &log)
	}
	t.Cleanup(func() {
		if code := s.stop(); code != exitDone {
			t.Errorf("serve ended with %d: %s", code, &log)
		}
	})
	return s
}

var listening = regexp.MustCompile(`(?m)^listening on (http://\S+)$`)

// lineWatch passes r on and sends the address once its line has come.
type lineWatch struct {
	r       io.Reader
	seen    []byte
	address chan<- string
}

func (l *lineWatch) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	l.seen = append(l.seen, b[:n]...)
	if match := listening.FindSubmatch(l.seen); match != nil && l.address != nil {
		l.address <- string(match[1])
		l.address = nil
	}
	return n, err
}

func TestCommandLinesThatMakeNoSenseSaySoInOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"an unknown command", []string{"srve"}, `there is no command "srve"`},
		{"an unknown command has one hint", []string{"srve"}, "(see onereply help)"},
		{"an unknown flag", []string{"serve", "--prot", "1"}, "flag provided but not defined: --prot"},
		{"an unknown flag of ask", []string{"ask", "--prot", "1"}, "flag provided but not defined: --prot"},
		{"a number that is none", []string{"tasks", "list", "--limit", "x"}, `for flag --limit`},
		{"a wrong value", []string{"--lease", "soon"}, `--lease "soon": not a duration`},
		{"several wrong values", []string{"serve", "--lease", "soon", "--workers", "0x"}, "--workers"},
		{"an address beyond this machine", []string{"--listen", "0.0.0.0:8080"}, "API keys"},
		{"a database of another make", []string{"--database", "mysql://x"}, "no database this build knows"},
		{"no question", []string{"ask"}, "needs one question"},
		{"two questions", []string{"ask", "a", "b"}, "not 2 arguments"},
		{"two readers of standard input", []string{"ask", "-", "--file", "-"}, "read only once"},
		{"an empty question", []string{"ask", " "}, "the question is empty"},
		{"a question and a task to come back to", []string{"ask", "a", "--follow", "x"}, "takes no other"},
		{"a server that is no URL", []string{"ask", "a", "--server", "x:1"}, "--server"},
		{"no action on tasks", []string{"tasks"}, "needs an action"},
		{"an unknown action on tasks", []string{"tasks", "drop", "x"}, `no action "drop"`},
		{"an unknown action on no task", []string{"tasks", "nope"}, `no action "nope"`},
		{"a task without an id", []string{"tasks", "show"}, "needs the id"},
		{"a deadline that is no time", []string{"tasks", "resume", "x", "--deadline", "tomorrow"}, "no time like"},
		{"no action on the schema", []string{"migrate"}, "needs one action"},
		{"an unknown action on the schema", []string{"migrate", "down"}, `no action "down"`},
		{"an argument to version", []string{"version", "x"}, "unexpected argument"},
		{"help for nothing", []string{"help", "x"}, `no command "x" (see onereply help)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := execute(t, nil, c.args...)
			if got.code != exitUsage {
				t.Errorf("exit code is %d, want %d", got.code, exitUsage)
			}
			if !strings.Contains(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 || !strings.HasPrefix(got.stderr, "onereply") ||
				strings.Count(got.stderr, "see onereply") > 1 {
				t.Errorf("said %q, want one line with %q", got.stderr, c.want)
			}
			if got.stdout != "" {
				t.Errorf("standard output holds %q", got.stdout)
			}
		})
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	t.Parallel()
	overview := execute(t, nil, "help")
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help", "--help"}, {"help", "help"}} {
		if got := execute(t, nil, args...); got.code != exitDone || got.stdout != overview.stdout {
			t.Errorf("%v: code %d, output %q, %q", args, got.code, got.stdout, got.stderr)
		}
	}
	for _, c := range commands() {
		if !strings.Contains(overview.stdout, c.name) {
			t.Errorf("help does not list %s", c.name)
		}
		for _, args := range [][]string{{c.name, "--help"}, {"help", c.name}} {
			got := execute(t, nil, args...)
			if got.code != exitDone || !strings.Contains(got.stdout, "Examples:\n  onereply "+c.name) || got.stderr != "" {
				t.Errorf("%v: code %d, output %q, %q", args, got.code, got.stdout, got.stderr)
			}
		}
	}
	if got := execute(t, map[string]string{"ONEREPLY_API_KEY": "hunter2", "ONEREPLY_SERVER": "http://x"}, "ask", "--help"); strings.Contains(got.stdout, "hunter2") {
		t.Error("help shows a key")
	}
}

func TestVersionNamesGo(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"version", "--version", "-version", "-v"} {
		got := execute(t, nil, word)
		if got.code != exitDone || !regexp.MustCompile(`^onereply \S+.* go1\.\d+\S* \w+/\w+\n$`).MatchString(got.stdout) {
			t.Errorf("%s: code %d, output %q, %q", word, got.code, got.stdout, got.stderr)
		}
	}
}

func TestNoServerIsSaidAtOnceAndWithARemedy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	l.Close()
	got := execute(t, map[string]string{"ONEREPLY_SERVER": address}, "tasks", "list")
	if got.code != exitFailed || !strings.Contains(got.stderr, "nothing answers at "+address+"; start the service") {
		t.Errorf("code %d, said %q", got.code, got.stderr)
	}
}

func TestASecondServerOnThePortStopsBeforeItTouchesTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "a.db"))
	got := execute(t, nil, "serve", "--listen", strings.TrimPrefix(s.url, "http://"), "--database", "sqlite:"+filepath.Join(dir, "b.db"))
	if got.code != exitFailed || !strings.Contains(got.stderr, "is in use") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("code %d, said %q", got.code, got.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "b.db")); !os.IsNotExist(err) {
		t.Errorf("the second server's file: %v", err)
	}
}

func TestAFileThatIsNoDatabaseStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	corrupt := filepath.Join(dir, "corrupt.db")
	if err := os.WriteFile(corrupt, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"corrupt": corrupt, "a folder": dir, "in no folder": filepath.Join(dir, "nowhere", "x.db")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := execute(t, nil, "serve", "--listen", "127.0.0.1:0", "--database", "sqlite:"+file)
			if got.code != exitFailed || !strings.Contains(got.stderr, file) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("code %d, said %q", got.code, got.stderr)
			}
		})
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	env := map[string]string{"ONEREPLY_DATABASE": "sqlite:" + file}
	if got := execute(t, env, "migrate", "status"); got.code != exitFailed || !strings.Contains(got.stderr, "does not exist yet") {
		t.Errorf("status of no file: %+v", got)
	}
	if got := execute(t, env, "migrate", "print"); got.code != exitDone || !strings.Contains(got.stdout, "CREATE TABLE tasks") {
		t.Errorf("print: %+v", got)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("looking made the file: %v", err)
	}
	if got := execute(t, env, "migrate", "up"); got.code != exitDone || !strings.Contains(got.stdout, "applied 0001_") {
		t.Errorf("up: %+v", got)
	}
	if got := execute(t, env, "migrate", "up"); got.code != exitDone || !strings.Contains(got.stdout, "up to date") {
		t.Errorf("up again: %+v", got)
	}
	if got := execute(t, env, "migrate", "status"); got.code != exitDone || !strings.Contains(got.stdout, "0001_") || strings.Contains(got.stdout, "missing") {
		t.Errorf("status: %+v", got)
	}
}

func TestServeWithoutMigratingRefusesWhatIsNotMigrated(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	got := execute(t, nil, "serve", "--listen", "127.0.0.1:0", "--migrate=false", "--database", "sqlite:"+file)
	if got.code != exitFailed || !strings.Contains(got.stderr, "onereply migrate up") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("code %d, said %q", got.code, got.stderr)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the refused start left a file: %v", err)
	}
}

func TestServeEndsCleanlyWhenTold(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "x.db"))
	begun := time.Now()
	if code := s.stop(); code != exitDone {
		t.Errorf("exit code is %d", code)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("an idle service took %v to end, as if it had waited for its whole drain", took)
	}
}
