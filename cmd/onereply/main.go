// Command onereply runs the service and its tools. Without arguments it serves:
// one SQLite file, the database as the queue, the built-in demo model, the API,
// the workers and the page, in one process on 127.0.0.1:8080.
//
// main.go chooses the command, wire.go is the only place that joins adapters,
// and each command has a file of its own.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/onereply/onereply/internal/settings"
)

func main() {
	p := &process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: settings.Environment(), called: calledAs(os.Args[0])}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// process is what a command has of the outside.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         settings.Lookup
	called         string        // what starts this program; empty: onereply
	patience       time.Duration // with a stream that is broken; zero: longPatience
}

// runByGo is where the Go tool keeps programs that it builds to run them once.
var runByGo = regexp.MustCompile(`[/\\]go-build[^/\\]*[/\\]|[/\\][0-9a-f]{64}-d[/\\]`)

// calledAs gives the words that start this program again, so that the commands
// it prints work as they stand.
func calledAs(arg0 string) string {
	switch {
	case runByGo.MatchString(arg0):
		return "go run ./cmd/onereply"
	case strings.Contains(arg0, " "):
		return "'" + arg0 + "'"
	}
	return arg0
}

// command writes a command line of this program.
func (p *process) command(line string) string {
	if line != "" {
		line = " " + line
	}
	return cmp.Or(p.called, "onereply") + line
}

var example = regexp.MustCompile(`(?m)^( +|Try: +|Usage: )onereply( |$)`)

// print prints a help text, whose examples work as they stand.
func (p *process) print(help func(io.Writer)) {
	var b strings.Builder
	help(&b)
	fmt.Fprint(p.stdout, example.ReplaceAllStringFunc(b.String(), func(s string) string {
		return strings.Replace(s, "onereply", p.command(""), 1)
	}))
}

// command is one word of the command line.
type command struct {
	name    string
	summary string
	help    func(io.Writer) // the whole help text
	run     func(ctx context.Context, p *process, args []string) error
}

// commands lists the commands in the order in which help shows them.
func commands() []command {
	return []command{
		{"serve", "run the service (the default)", serveHelp, serve},
		{"ask", "ask a question and stream the answer", askHelp, ask},
		{"tasks", "list, show, cancel and resume tasks", tasksHelp, tasks},
		{"migrate", "bring the database's schema up to date, or show it", migrateHelp, migrate},
		{"simulate", "run a model provider with scripted faults, for tests and demos", simulateHelp, simulate},
		{"version", "print the version", versionHelp, version},
	}
}

// run carries out a command line and returns the exit code.
func (p *process) run(ctx context.Context, args []string) int {
	p.stdout, p.stderr = plainWriter{p.stdout}, plainWriter{p.stderr}
	name, args := choose(args)
	if name == "help" {
		return p.report("", p.showHelp(args))
	}
	for _, c := range commands() {
		if c.name == name {
			err := c.run(ctx, p, args)
			if errors.Is(err, settings.ErrHelp) {
				p.print(c.help)
				err = nil
			}
			return p.report(name, err)
		}
	}
	return p.report("", noCommand(name))
}

// choose tells the command from its arguments. Without one it is serve.
func choose(args []string) (name string, rest []string) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[0], args[1:]
	}
	if len(args) == 1 {
		switch strings.TrimLeft(args[0], "-") {
		case "h", "help":
			return "help", nil
		case "v", "version":
			return "version", nil
		}
	}
	return "serve", args
}

func noCommand(name string) error { return usagef("there is no command %q", name) }

// report prints an error in one line and turns it into an exit code. The name is
// the command's; empty: of none.
func (p *process) report(name string, err error) int {
	if err == nil {
		return exitDone
	}
	var quiet *exitError
	if errors.As(err, &quiet) {
		return quiet.code
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	var usage *settings.UsageError
	var faults settings.Faults
	if errors.As(err, &usage) {
		see := "help"
		if name != "" {
			see = name + " --help"
		}
		fmt.Fprintf(p.stderr, "%s: %s (see %s)\n", strings.TrimSpace("onereply "+name), text, p.command(see))
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "%s: %s\n", strings.TrimSpace("onereply "+name), text)
	if errors.As(err, &faults) {
		return exitUsage
	}
	return exitFailed
}

// exitError ends a command whose message has been printed already.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func usagef(format string, args ...any) error {
	return &settings.UsageError{Err: fmt.Errorf(format, args...)}
}

// newFlags returns a command's flag set, which says nothing by itself.
func newFlags(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// parseFlags parses flags that may stand before, between and after a command's
// own arguments, and returns those. Everything after "--" is an argument.
func parseFlags(set *flag.FlagSet, args []string) (own []string, err error) {
	var literal []string
	for i, a := range args {
		if a == "--" {
			args, literal = args[:i], args[i+1:]
			break
		}
	}
	for {
		if err := set.Parse(args); err != nil {
			return nil, settings.ParseError(err)
		}
		if set.NArg() == 0 {
			return append(own, literal...), nil
		}
		own = append(own, set.Arg(0))
		args = set.Args()[1:]
	}
}
