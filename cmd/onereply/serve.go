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

// closeGrace is how long answers that are being written may take once streams
// and waits have been told to end.
const closeGrace = 5 * time.Second

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
		greet(p.stdout, s, listener.Addr())
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
	failed = errors.Join(failed, <-engine)
	stopServing()
	return errors.Join(failed, shutDown(server))
}

// shutDown ends the server once the answers being written are through.
func shutDown(server *http.Server) error {
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
func greet(w io.Writer, s settings.Serve, address net.Addr) {
	at := "http://" + address.String()
	server := ""
	if at != settings.DefaultServer {
		server = " --server " + at
	}
	fmt.Fprintf(w, "onereply is ready, on %s, answered by %s\n", s.Database, s.Model)
	fmt.Fprintf(w, "listening on %s\n", at)
	fmt.Fprintf(w, "open that address in a browser, or try: onereply ask \"What is a fencing token?\"%s\n", server)
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
