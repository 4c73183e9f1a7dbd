package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/onereply/onereply/internal/settings"
)

// showHelp prints the overview, or one command's help.
func (p *process) showHelp(args []string) error {
	if name, _ := choose(args); len(args) == 0 || name == "help" {
		p.print(overview)
		return nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			p.print(c.help)
			return nil
		}
	}
	return noCommand(args[0])
}

// firstQuestion is an ask that the demo model, which only quotes the text it is
// given, answers well, and a real model as well.
const firstQuestion = `ask "Who does what by when? Anna pays the deposit by Friday. It was a long meeting. Ben calls the caterer on 3 March."`

func overview(w io.Writer) {
	fmt.Fprint(w, `onereply gives one accepted reply per press of Send.

Usage: onereply [command] [flags]

`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, `
Try: onereply
     onereply `+firstQuestion+`
     onereply help serve

The first serves a page; open the address it prints. The second asks it from
another terminal. The third lists every setting, its default and its variable.
`)
}

// flagHelp prints a command's flags with two dashes, as the rest of the help
// writes them.
func flagHelp(w io.Writer, set *flag.FlagSet) {
	fmt.Fprint(w, "\nFlags:\n")
	set.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		line := "  --" + f.Name
		if value != "" {
			line += " " + value
		}
		fmt.Fprintf(w, "%s\n        %s", line, usage)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
}

func serveHelp(w io.Writer) {
	fmt.Fprint(w, `onereply serve runs the service until SIGTERM or Ctrl-C.

Usage: onereply serve [flags]

Examples:
  onereply serve
  onereply serve --listen 127.0.0.1:0 --database sqlite:/var/lib/onereply/data.db
  onereply serve --model compatible:llama3.2@http://127.0.0.1:11434/v1
  onereply serve --roles work        a second process on the same file that only works

Every flag has a variable; flags win.

`)
	settings.Help(w)
}

func askHelp(w io.Writer) {
	fmt.Fprint(w, `onereply ask asks a running service a question and streams the answer.

Usage: onereply ask [flags] "question"

The question, or a --file, may be - for standard input. The answer goes to
standard output, progress to standard error. The exit code
is 0 only when the answer is complete and saved. Ctrl-C leaves the task running
and prints how to come back to it.

Examples:
  onereply `+firstQuestion+`
  onereply ask "What does this say about leases?" --file notes.md
  git log -5 | onereply ask "What changed?" --file -
  onereply ask "And about clocks?" --conversation 0197a6c2-…
`)
	flagHelp(w, newAsk(noVariables).set)
}

func tasksHelp(w io.Writer) {
	fmt.Fprint(w, `onereply tasks looks after the tasks of a running service.

Usage: onereply tasks list   [--status S] [--kind K] [--limit N] [--after ID] [--json]
       onereply tasks show   ID [--json]      attempts, calls, budget and timeline
       onereply tasks cancel ID [--json]
       onereply tasks resume ID [--deadline TIME] [--json]

Examples:
  onereply tasks list --status failed
  onereply tasks show 0197a6c2-…
  onereply tasks resume 0197a6c2-… --deadline 2030-01-02T15:04:05Z
`)
	flagHelp(w, newTasks(noVariables).set)
}

func migrateHelp(w io.Writer) {
	fmt.Fprint(w, `onereply migrate looks after the database's schema. The service migrates a
SQLite file by itself when it starts; these commands are for doing it apart.

Usage: onereply migrate up       apply what is missing; safe to repeat
       onereply migrate status   what is applied and what is missing
       onereply migrate print    the whole schema as SQL; needs no database

Examples:
  onereply migrate status --database sqlite:/var/lib/onereply/data.db
`)
	set := newFlags("migrate")
	settings.RegisterDatabase(set, noVariables)
	flagHelp(w, set)
}

func versionHelp(w io.Writer) {
	fmt.Fprint(w, `onereply version prints the version, the commit and the Go version of this
binary.

Usage: onereply version

Examples:
  onereply version
`)
}

// noVariables hides the environment, so that help shows the product's defaults.
func noVariables(string) (string, bool) { return "", false }

// table prints rows as aligned columns.
func table(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
