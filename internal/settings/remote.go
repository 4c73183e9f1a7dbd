package settings

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
)

// DefaultServer is where a service with default settings is found.
const DefaultServer = "http://127.0.0.1:8080"

// Remote says which server a client command talks to.
type Remote struct {
	Server string // base URL
	APIKey string // empty: none is sent
}

// RegisterRemote adds --server and --api-key to a command's flags, with the
// environment's values as defaults, and returns where they are kept once the
// flags are parsed.
func RegisterRemote(set *flag.FlagSet, lookup Lookup) *Remote {
	r := &Remote{}
	set.StringVar(&r.Server, "server", variable(lookup, "ONEREPLY_SERVER", DefaultServer),
		"the `URL` of the server to talk to; ONEREPLY_SERVER")
	// No default is given to the flag set: it would be printed with the help.
	set.StringVar(&r.APIKey, "api-key", "", "the `KEY` to send as a bearer token; ONEREPLY_API_KEY")
	return r
}

// Resolve checks the settings after parsing and fills in the key of the
// environment where no flag gave one. The error is [Faults].
func (r *Remote) Resolve(lookup Lookup) error {
	if r.APIKey == "" {
		r.APIKey = variable(lookup, "ONEREPLY_API_KEY", "")
	}
	var f Faults
	if err := checkServer(r.Server); err != nil {
		f.addf("--server %q: %v", r.Server, err)
	}
	if strings.ContainsFunc(r.APIKey, func(c rune) bool { return c <= ' ' || c > '~' }) {
		f.addf("--api-key: holds a character that no key has")
	}
	if len(f) > 0 {
		return f
	}
	return nil
}

func checkServer(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("cannot be read as a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("must begin with http:// or https:// and name a host")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return errors.New("must not hold a user, a query or a fragment")
	}
	return nil
}

// RegisterDatabase adds --database to a command's flags, with the environment's
// value as default; the function it returns reads the flag after parsing.
func RegisterDatabase(set *flag.FlagSet, lookup Lookup) func() (Database, error) {
	text := set.String("database", variable(lookup, "ONEREPLY_DATABASE", "sqlite:onereply.db"),
		"the database, as `sqlite:FILE` or postgres://…; ONEREPLY_DATABASE")
	return func() (Database, error) {
		d, err := ParseDatabase(*text)
		if err != nil {
			return Database{}, Faults{fmt.Sprintf("--database %q: %v", hidePassword(*text), err)}
		}
		return d, nil
	}
}

// variable returns a variable's value, or def where it is unset or empty.
func variable(lookup Lookup, name, def string) string {
	if v, found := lookup(name); found && v != "" {
		return v
	}
	return def
}
