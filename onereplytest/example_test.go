package onereplytest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/onereplytest"
	"github.com/onereply/onereply/store/sqlite"
)

// A kind that asks a model and keeps its answers is tried at every boundary.
func ExampleBoundaries() {
	test := func(t *testing.T) { // func TestReplies(t *testing.T)
		onereplytest.Boundaries(t, func(_ *testing.T, w *onereplytest.World) onereplytest.Case {
			w.Exec(`CREATE TABLE answers (task_id TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL)`)
			replies := &onereply.Definition[ask, answer]{
				Name: "reply",
				Work: func(ctx context.Context, a onereply.Attempt, in ask) (answer, error) {
					err := a.Call(ctx, func(ctx context.Context, c onereply.Call) error {
						if err := c.Send(); err != nil {
							return err
						}
						return w.Provider.Do(ctx) // the model
					})
					return answer{Text: "about " + in.Text}, err
				},
				Ended: func(ctx context.Context, tx onereply.Tx, ended []onereply.Ended[ask, answer]) error {
					for _, e := range ended {
						if e.Out == nil {
							continue // failed or cancelled: there is no answer to keep
						}
						_, err := sqlite.Unwrap(tx).ExecContext(ctx,
							`INSERT INTO answers (task_id, text) VALUES (?, ?)`, string(e.Task.ID), e.Out.Text)
						if err != nil {
							return err
						}
					}
					return nil
				},
			}
			return onereplytest.Case{
				Kind: replies.Kind(),
				Submission: func(i int, key string) (onereply.Submission, error) {
					return replies.Submission("me", key, ask{Text: fmt.Sprint("question ", i)})
				},
				Ended: onereplytest.Query(`SELECT task_id FROM answers`),
			}
		})
	}
	_ = test
}

// A worker is frozen in the middle of a call until another has taken over, and
// comes back as a zombie.
func ExampleRun() {
	test := func(t *testing.T, kind onereply.Kind, s onereply.Submission) {
		onereplytest.Run(t, func(t *testing.T, w *onereplytest.World) {
			first := w.Start(engine.Options{}, kind)
			hold := first.HoldAt(onereplytest.InCall)
			done, err := first.Engine.Submit(t.Context(), s)
			if err != nil || !hold.Wait() {
				t.Fatalf("%+v, %v", done, err)
			}
			first.Freeze()
			second := w.Start(engine.Options{}, kind)
			task, err := second.Engine.Wait(t.Context(), s.Scope, done.Task.ID)
			first.Thaw()
			t.Log(task.Status, task.Version, err)
		})
	}
	_ = test
}
