package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/onereply/onereply/provider/simulator"
)

// simulation holds the flags of simulate.
type simulation struct {
	set    *flag.FlagSet
	listen string
	script string
}

func newSimulation() *simulation {
	s := &simulation{set: newFlags("simulate")}
	s.set.StringVar(&s.listen, "listen", "127.0.0.1:9090", "the `HOST:PORT` to listen on; port 0 lets the system choose one")
	s.set.StringVar(&s.script, "script", "", "a `FILE` of rules: a JSON list of {\"match\": …, \"markers\": …}")
	return s
}

// simulate runs the scripted provider until a signal ends it.
func simulate(ctx context.Context, p *process, args []string) (err error) {
	s := newSimulation()
	rest, err := parseFlags(s.set, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("unexpected argument %q", rest[0])
	}
	var o simulator.Options
	if s.script != "" {
		raw, err := os.ReadFile(s.script)
		if err != nil {
			return fmt.Errorf("--script: %w", err)
		}
		if o.Script, err = simulator.ParseScript(raw); err != nil {
			return fmt.Errorf("--script %s: %w", s.script, err)
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := listen(ctx, s.listen)
	if err != nil {
		return err
	}
	sim := simulator.New(o)
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	at := "http://" + listener.Addr().String()
	fmt.Fprintf(p.stdout, "listening on %s\n", at)
	fmt.Fprintf(p.stdout, "try: %s\n", p.command("serve --model compatible:simulated@"+at+"/v1"))
	fmt.Fprintf(p.stdout, "or with --model openai:NAME and OPENAI_BASE_URL=%s/v1, or anthropic:NAME and ANTHROPIC_BASE_URL=%s\n", at, at)
	select {
	case err = <-served:
	case <-ctx.Done():
		sim.Close()
		err = errors.Join(server.Close(), <-served)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func simulateHelp(w io.Writer) {
	fmt.Fprint(w, `onereply simulate is a model provider with scripted faults, for tests and
demonstrations. It speaks the wires of OpenAI (chat completions, and Responses,
in the background too) and of Anthropic (Messages), streamed.

Usage: onereply simulate [flags]

Markers in the last message say what happens to it:
  [[say TEXT]] [[think TEXT]] [[empty]] [[blank]] [[nul]] [[big MIB]] [[refusal TEXT]]
  [[filter]] [[length]] [[usage IN OUT]] [[pause]]      how it ends
  [[delay 2s]] [[slow 50ms]]                            waits before it, or between words
  [[status 429 CODE]] [[retry-after 2]] [[redirect 307]] [[html]] [[json {}]]
  [[cut before]] [[cut after 3]] [[reset …]] [[hang …]] the line breaks, or nothing more comes
  [[no-end 3]] [[no-done]] [[no-finish]]                end marks are missing
  [[error-after 3 overloaded_error]] [[broken-json 3]]  in the middle of a stream
  [[toolcall]] [[toolcall cut]]                         the model asks for a tool
  [[failed 3 CODE]] [[cancelled 3]] [[queued]] [[missing 2]] [[no-resume]]
                                                        responses made in the background
  [[1: …]] [[2+: …]]                                    for the first request, or from the second on

Examples:
  onereply simulate
  onereply serve --model compatible:simulated@http://127.0.0.1:9090/v1
  onereply ask "[[1: status 529]] [[2: say Paris]] What is the capital of France?"
  onereply simulate --script faults.json

where faults.json holds
  [{"match": "weather", "markers": "[[1: cut after 3]] [[2+: say sunny]]"}]
`)
	flagHelp(w, newSimulation().set)
}
