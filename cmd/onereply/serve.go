package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onereply/onereply/httpapi"
	"github.com/onereply/onereply/internal/settings"
)

const (
	// lastWords is how long streams and waits may take to write what the engine's
	// last act was, before they are told to end.
	lastWords = 2 * time.Second
	// closeGrace is how long all answers that are being written may take.
	closeGrace = 5 * time.Second
)

// serve runs the service until a signal ends it.
func serve(ctx context.Context, p *process, args []string) error {
	s, err := settings.ParseServe(args, p.lookup)
	if err != nil {
		return err
	}
	log := logger(p.stderr, s)
	// The first signal drains, a second ends at once.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, drain := context.WithCancel(ctx)
	defer drain()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case got := <-signals:
			log.Info("draining", "signal", got.String(), "grace", s.Drain)
			drain()
		case <-done:
			return
		}
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return run(ctx, p, s, log)
}

// run starts the service and blocks until ctx ends and everything has ended.
func run(ctx context.Context, p *process, s settings.Serve, log *slog.Logger) (err error) {
	var listener net.Listener
	if s.Roles.API {
		// The port comes first: a second server stops before it touches the file.
		if listener, err = listen(ctx, s.Listen); err != nil {
			return err
		}
		defer listener.Close()
	}
	// The API outlives the drain, so that readers see the answers that end in it.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	v, err := wire(ctx, serving, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()

	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	engine := make(chan error, 1)
	go func() { engine <- v.engine.Run(working) }()
	web := make(chan error, 1)
	server := httpapi.Server(v.handler, log)
	if listener != nil {
		go func() { web <- server.Serve(listener) }()
		greet(p, s, listener.Addr())
	} else {
		fmt.Fprintf(p.stdout, "onereply plays %s on %s\n", s.Roles, s.Database)
	}

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-web:
		failed = fmt.Errorf("serving %s: %w", listener.Addr(), failed)
	case failed = <-engine:
		engine <- failed
	}
	v.draining.Store(true)
	stopWorking()
	// In this order, so that a reader of an answer that ends in the drain gets its
	// end: the engine is through, which ends each stream and wait after its last
	// event; the server waits for them; and only what is left then is told to end.
	failed = errors.Join(failed, <-engine)
	return errors.Join(failed, shutDown(server, stopServing))
}

// shutDown ends the server once the answers being written are through. Tell ends
// streams and waits that do not end by themselves.
func shutDown(server *http.Server, tell func()) error {
	defer time.AfterFunc(lastWords, tell).Stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("ending connections: %w", err), server.Close())
	}
	return nil
}

// portGrace is how long a port may still be held by a process that has just
// been killed, before it counts as in use.
const portGrace = time.Second

// listen takes the port.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	for began := time.Now(); errors.Is(err, syscall.EADDRINUSE) && time.Since(began) < portGrace && ctx.Err() == nil; {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		l, err = c.Listen(ctx, "tcp", address)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use, perhaps by another onereply; choose another address with --listen", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not be used by this user; choose a port above 1023 with --listen", address)
	case err != nil:
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return l, nil
}

// greet says where to look. The second line is for programs as well.
func greet(p *process, s settings.Serve, address net.Addr) {
	w, at := p.stdout, "http://"+address.String()
	question := `ask "What is a fencing token?"`
	if s.Model.Provider == settings.Demo {
		question = firstQuestion
	}
	fmt.Fprintf(w, "onereply is ready, on %s, answered by %s\n", s.Database, s.Model)
	fmt.Fprintf(w, "listening on %s\n", at)
	fmt.Fprintf(w, "open that address in a browser, or try: %s\n", hint(p, &settings.Remote{Server: at}, question))
	if s.Model.Provider == settings.Demo {
		fmt.Fprintln(w, "the demo model only picks sentences from the text you give it; --model names a real one")
	}
}

// logger writes the service's log to w.
func logger(w io.Writer, s settings.Serve) *slog.Logger {
	o := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// readiness says why the service should get no new work: it drains, or its
// store does not answer.
func readiness(draining *atomic.Bool, ask func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if draining.Load() {
			return errors.New("draining")
		}
		return ask(ctx)
	}
}
