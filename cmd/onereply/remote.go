package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/onereply/onereply/client"
	"github.com/onereply/onereply/internal/settings"
)

const (
	// quickPatience bounds requests a person waits for: a server that is not
	// there should be said to be missing, not waited for.
	quickPatience = 2 * time.Second
	// longPatience bounds how long a stream may stay broken: a restart of the
	// server is no reason to give up on an answer, a server that stays away is.
	longPatience = 2 * time.Minute
)

// dial returns a client of the server the flags name.
func dial(p *process, r *settings.Remote, patience time.Duration) (*client.Client, error) {
	if err := r.Resolve(p.lookup); err != nil {
		return nil, err
	}
	n := &notices{p: p, server: r.Server}
	return client.New(r.Server, client.Options{APIKey: r.APIKey, Patience: patience, Retrying: n.retrying})
}

// quiet is how long a notice about retries is good for.
const quiet = 30 * time.Second

// notices tells a person about retries: what is short is not told, what lasts is
// told now and then.
type notices struct {
	p      *process
	server string
	last   time.Time
}

func (n *notices) retrying(cause error, wait time.Duration) {
	if wait < 500*time.Millisecond || time.Since(n.last) < quiet {
		return
	}
	n.last = time.Now()
	for inner := errors.Unwrap(cause); inner != nil; inner = errors.Unwrap(inner) {
		cause = inner
	}
	fmt.Fprintf(n.p.stderr, "\n(no answer from %s: %v; trying again)\n", n.server, cause)
}

// explain adds what to try to an error of a client.
func explain(p *process, err error, r *settings.Remote) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s; start the service with: %s (%w)", r.Server, p.command(""), err)
	case problemCode(err) == "unauthorized":
		return fmt.Errorf("%w; give a key with --api-key or ONEREPLY_API_KEY", err)
	}
	return err
}

func problemCode(err error) string {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// hint writes a command for the same server.
func hint(p *process, r *settings.Remote, line string) string {
	if r.Server != settings.DefaultServer {
		line += " --server " + r.Server
	}
	return p.command(line)
}

// printJSON prints JSON in ASCII's printable characters where it says control
// characters, so that none is left for the terminal.
func printJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, c1.ReplaceAllStringFunc(b.String(), func(s string) string {
		r, _ := utf8.DecodeRuneInString(s)
		return fmt.Sprintf(`\u%04x`, r)
	}))
	return err
}

// c1 are the control characters that JSON leaves as they are; in JSON they can
// stand in strings only.
var c1 = regexp.MustCompile("[\u007f-\u009f]")
