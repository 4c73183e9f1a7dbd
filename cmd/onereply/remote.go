package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/onereply/onereply/client"
	"github.com/onereply/onereply/internal/settings"
)

const (
	// quickPatience bounds requests a person waits for: a server that is not
	// there should be said to be missing, not waited for.
	quickPatience = 2 * time.Second
	// longPatience bounds how long a stream may stay broken: a restart or an
	// upgrade of the server is no reason to give up on an answer.
	longPatience = 15 * time.Minute
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
func explain(err error, r *settings.Remote) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s; start the service with: onereply (%w)", r.Server, err)
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
func hint(r *settings.Remote, line string) string {
	if r.Server != settings.DefaultServer {
		line += " --server " + r.Server
	}
	return line
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
