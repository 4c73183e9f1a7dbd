// Package settings reads what an operator may set: command-line flags and
// ONEREPLY_* variables, where flags win. It is the only package that looks at
// the environment, and everything it returns has been checked, so that a wrong
// value stops the start with one line that names every fault.
//
// Start at [Serve], the settings of the service; table.go lists its flags once,
// and the parser, the help text and docs/settings.md all come from that list.
package settings

import "os"

// Lookup finds a variable of the environment.
type Lookup func(name string) (value string, found bool)

// Environment looks variables up in the process's environment.
func Environment() Lookup { return os.LookupEnv }
