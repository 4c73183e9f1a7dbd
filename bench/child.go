package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/httpapi"
	"github.com/onereply/onereply/provider/demo"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/tables"
)

// child runs one of the children: "service" is the service as its command joins
// it, which can be asked for its memory; "busy" submits without end.
func child(ctx context.Context, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	if len(args) != 2 {
		return errors.New("child: what, and on which file?")
	}
	switch args[0] {
	case "service":
		return childService(ctx, args[1])
	case "busy":
		return childBusy(ctx, args[1])
	}
	return fmt.Errorf("child: no such child: %s", args[0])
}

// status is what a child says of itself.
type status struct {
	Heap   uint64 // in use, after a collection
	Stack  uint64
	Calls  int64 // of the store
	Tasks  []string
	Failed string
}

func childService(ctx context.Context, file string) error {
	db, err := sqlite.Open(ctx, file, sqlite.Options{Migrate: true})
	if err != nil {
		return err
	}
	defer db.Close()
	counted := &counting{Store: db}
	rows, err := tables.NewChat(tables.Database{
		Read:   tables.SQL(db.Reader()),
		Unwrap: func(tx onereply.Tx) tables.Querier { return tables.SQL(sqlite.Unwrap(tx)) },
		Now:    db.Now, Fault: sqlite.Fault,
	})
	if err != nil {
		return err
	}
	talk, err := chat.New(chat.Config{Store: rows, Model: demo.New(0)})
	if err != nil {
		return err
	}
	parked := &onereply.Definition[ask, answer]{Name: "parked"} // no Work: its tasks stay queued
	e, err := engine.New(engine.Options{Store: counted, Kinds: []onereply.Kind{talk.Kind(), parked.Kind()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	talk.Bind(e)
	left := make(chan error, 1)
	go func() { left <- e.Run(ctx) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	server := httpapi.Server(httpapi.New(httpapi.Config{Engine: e, Chat: talk, Shutdown: ctx, Logger: log}), log)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "child:", err)
		}
	}()
	fmt.Printf("listening on http://%s\n", listener.Addr())
	go answerQuestions(ctx, e, counted, parked)
	<-ctx.Done()
	return errors.Join(<-left, server.Close())
}

// answerQuestions reads a question a line and prints a line of JSON for each.
func answerQuestions(ctx context.Context, e *engine.Engine, counted *counting, parked *onereply.Definition[ask, answer]) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		s := status{Calls: counted.calls.Load()}
		if n, err := fmt.Sscanf(lines.Text(), "park %d", new(int)); n == 1 && err == nil {
			var count int
			_, _ = fmt.Sscanf(lines.Text(), "park %d", &count) // it was read a line above
			if s.Tasks, err = park(ctx, e, parked, count); err != nil {
				s.Failed = err.Error()
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		s.Heap, s.Stack = m.HeapInuse, m.StackInuse
		if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
			return // nobody asks any more
		}
	}
}

// park submits tasks that nobody works on.
func park(ctx context.Context, e *engine.Engine, k *onereply.Definition[ask, answer], n int) ([]string, error) {
	tasks := make([]string, n)
	err := atOnce(64, n, func(i int) error {
		sub, err := k.Submission("default", fmt.Sprint("park ", i), ask{Text: sentence})
		if err != nil {
			return err
		}
		r, err := e.Submit(ctx, sub)
		tasks[i] = string(r.Task.ID)
		return err
	})
	return tasks, err
}
