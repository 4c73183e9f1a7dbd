// Command onereply runs the service and its tools. Without arguments it serves:
// one SQLite file, the database as the queue, the built-in demo model, the API,
// the workers and the page, in one process on 127.0.0.1:8080.
//
// main.go chooses the command, wire.go is the only place that joins adapters,
// and each command has a file of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/onereply/onereply/internal/settings"
)

func main() {
	p := &process{stdout: os.Stdout, stderr: os.Stderr, lookup: settings.Environment()}
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
	stdout, stderr io.Writer
	lookup         settings.Lookup
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
		{"version", "print the version", versionHelp, version},
	}
}

// run carries out a command line and returns the exit code.
func (p *process) run(ctx context.Context, args []string) int {
	name := "serve"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) == 1 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		name, args = "help", nil
	}
	if name == "help" {
		return p.report("help", p.showHelp(args))
	}
	for _, c := range commands() {
		if c.name == name {
			err := c.run(ctx, p, args)
			if errors.Is(err, settings.ErrHelp) {
				c.help(p.stdout)
				err = nil
			}
			return p.report(name, err)
		}
	}
	return p.report(name, usagef("there is no command %q; see onereply help", name))
}

// report prints an error in one line and turns it into an exit code.
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
		fmt.Fprintf(p.stderr, "onereply %s: %s (see onereply %s --help)\n", name, text, name)
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "onereply %s: %s\n", name, text)
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
			if errors.Is(err, flag.ErrHelp) {
				return nil, settings.ErrHelp
			}
			return nil, &settings.UsageError{Err: err}
		}
		if set.NArg() == 0 {
			return append(own, literal...), nil
		}
		own = append(own, set.Arg(0))
		args = set.Args()[1:]
	}
}
