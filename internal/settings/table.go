package settings

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Flag describes one setting: how it is spelled, what it means, and how a text
// becomes its value.
type Flag struct {
	Name    string // without dashes
	Value   string // what stands for the value in help, such as DURATION
	Default string // as a user would write it
	Derived string // where there is no fixed default: what it follows from
	Usage   string // one sentence
	NoFlag  bool   // a variable only: a secret does not belong on a command line
	Env     string // the variable, where it has a name that others gave it

	set  func(text string) error
	show func(text string) string // makes the text fit to be shown; nil: it is
}

// Variable returns the name of the variable that sets the same thing.
func (f Flag) Variable() string {
	if f.Env != "" {
		return f.Env
	}
	return "ONEREPLY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// Faults lists everything that is wrong with the settings given, each entry
// beginning with the flag it is about. Its text is one line.
type Faults []string

// Error joins the faults.
func (f Faults) Error() string { return strings.Join(f, "; ") }

func (f *Faults) addf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// ErrHelp says that help was asked for; print it and stop.
var ErrHelp = flag.ErrHelp

// UsageError is a command line that cannot be understood at all.
type UsageError struct{ Err error }

// Error gives the reason.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// text keeps what was given for later, so that one bad value does not hide the next.
type text struct {
	value string
	given bool
}

func (t *text) String() string { return t.value }

func (t *text) Set(value string) error {
	t.value, t.given = value, true
	return nil
}

// parse sets the flags from args and the environment and returns the arguments
// left over, and the names of the flags whose value could not be read. Flags
// win; an empty variable counts as unset. Only the value that wins is judged.
func parse(flags []Flag, args []string, lookup Lookup, faults *Faults) (rest, unread []string, _ error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	given := make([]text, len(flags))
	for i, f := range flags {
		if !f.NoFlag {
			set.Var(&given[i], f.Name, f.Usage)
		}
	}
	if err := set.Parse(args); err != nil {
		return nil, nil, ParseError(err)
	}
	for i, f := range flags {
		value, source := f.Default, "--"+f.Name
		if v, found := lookup(f.Variable()); found && v != "" {
			value, source = v, "--"+f.Name+" (from "+f.Variable()+")"
		}
		if given[i].given {
			value, source = given[i].value, "--"+f.Name
		}
		if f.NoFlag {
			source = f.Variable()
		}
		if err := f.set(value); err != nil {
			unread = append(unread, f.Name)
			if f.NoFlag {
				faults.addf("%s %v", source, err)
				continue
			}
			if f.show != nil {
				value = f.show(value)
			}
			faults.addf("%s %q: %v", source, value, err)
		}
	}
	return set.Args(), unread, nil
}

// flagNames finds the flags in what package flag says, which writes them with
// one dash.
var flagNames = regexp.MustCompile(`(defined: |argument: |flag )-(\w)`)

// ParseError is what an error of a flag set's Parse means: [ErrHelp], or a
// [*UsageError] that writes flags with two dashes, as everything else does.
func ParseError(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return ErrHelp
	}
	return &UsageError{Err: errors.New(flagNames.ReplaceAllString(err.Error(), "$1--$2"))}
}

// help writes the flags as an aligned list.
func help(w io.Writer, flags []Flag) {
	for _, f := range flags {
		if f.NoFlag {
			fmt.Fprintf(w, "  %s\n        %s\n", f.Variable(), f.Usage)
			continue
		}
		def := f.Default
		if def == "" {
			def = f.Derived
		}
		fmt.Fprintf(w, "  --%s %s\n        %s\n        default %s; %s\n", f.Name, f.Value, f.Usage, def, f.Variable())
	}
}

// Markdown writes the flags of the service as a table, for docs/settings.md.
func Markdown(w io.Writer) {
	fmt.Fprint(w, "| flag | variable | default | |\n| --- | --- | --- | --- |\n")
	for _, f := range Flags() {
		name, def := "`--"+f.Name+" "+f.Value+"`", "`"+f.Default+"`"
		if f.NoFlag {
			name = "none"
		}
		if f.Default == "" {
			def = cmp.Or(f.Derived, "none")
		}
		fmt.Fprintf(w, "| %s | `%s` | %s | %s |\n", strings.ReplaceAll(name, "|", "\\|"), f.Variable(), def, f.Usage)
	}
}
