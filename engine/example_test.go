package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/sqlite"
)

// A whole program: one kind of task, one press, one response.
func Example() {
	dir, err := os.MkdirTemp("", "onereply")
	check(err)
	defer os.RemoveAll(dir)
	shouts := &onereply.Definition[string, string]{
		Name: "shout",
		Work: func(_ context.Context, _ onereply.Attempt, in string) (string, error) {
			return strings.ToUpper(in), nil // a candidate: the engine accepts it, once
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	db, err := sqlite.Open(ctx, filepath.Join(dir, "tasks.db"), sqlite.Options{Migrate: true})
	check(err)
	eng, err := engine.New(engine.Options{Store: db, Kinds: []onereply.Kind{shouts.Kind()}})
	check(err)
	ended := make(chan error)
	go func() { ended <- eng.Run(ctx) }()

	press, err := shouts.Submission("workspace", "key of this press", "hello")
	check(err)
	for range 2 { // the network failed; the client sends again
		res, err := eng.Submit(ctx, press)
		check(err)
		task, err := eng.Wait(ctx, "workspace", res.Task.ID)
		check(err)
		fmt.Println(res.Created, task.Status, string(task.Response))
	}
	stop()
	check(<-ended)
	check(db.Close())
	// Output:
	// true completed "HELLO"
	// false completed "HELLO"
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
