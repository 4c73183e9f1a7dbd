package onereplytest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/onereplytest"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/store/sqlite"
)

type ask struct {
	Text string `json:"text"`
}

type answer struct {
	Text string `json:"text"`
}

type replies = onereply.Definition[ask, answer]

// program is a small program as a user would write it: a kind that asks a model
// over HTTP, and hooks that keep questions and answers.
type program struct {
	w     *onereplytest.World
	model http.RoundTripper
	kind  *replies
}

const tables = `
CREATE TABLE questions (task_id TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE answers (task_id TEXT NOT NULL, text TEXT NOT NULL);`

func newProgram(w *onereplytest.World) *program {
	w.Exec(tables)
	w.Provider.Handle(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(rw).Encode(answer{Text: strings.Repeat("it depends ", 20)}); err != nil {
			panic(err)
		}
	}))
	p := &program{w: w, model: w.Provider}
	p.kind = &replies{Name: "reply", Work: p.work, Created: p.created, Ended: p.ended}
	return p
}

func (p *program) work(ctx context.Context, a onereply.Attempt, in ask) (out answer, err error) {
	err = a.Call(ctx, func(ctx context.Context, c onereply.Call) error {
		out, err = p.post(ctx, c, in)
		return err
	})
	return out, err
}

func (p *program) post(ctx context.Context, c onereply.Call, in ask) (out answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://model.example/answers", strings.NewReader(in.Text))
	if err != nil {
		return out, err
	}
	response, err := provider.ClientWith(c, p.model).Do(request)
	if err != nil {
		return out, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return out, fmt.Errorf("the model said %s", response.Status)
	}
	return out, json.NewDecoder(response.Body).Decode(&out)
}

func (p *program) created(ctx context.Context, tx onereply.Tx, created []onereply.Created[ask]) error {
	for _, c := range created {
		_, err := sqlite.Unwrap(tx).ExecContext(ctx, `INSERT INTO questions (task_id, text) VALUES (?, ?)`, string(c.Task.ID), c.In.Text)
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) ended(ctx context.Context, tx onereply.Tx, ended []onereply.Ended[ask, answer]) error {
	for _, e := range ended {
		if e.Out == nil {
			continue
		}
		_, err := sqlite.Unwrap(tx).ExecContext(ctx, `INSERT INTO answers (task_id, text) VALUES (?, ?)`, string(e.Task.ID), e.Out.Text)
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) testCase() onereplytest.Case {
	return onereplytest.Case{
		Kind: p.kind.Kind(),
		Submission: func(i int, key string) (onereply.Submission, error) {
			return p.kind.Submission("me", key, ask{Text: fmt.Sprint("question ", i)})
		},
		Created: onereplytest.Query(`SELECT task_id FROM questions`),
		Ended:   onereplytest.Query(`SELECT task_id FROM answers`),
		Check: func(t testing.TB, s onereplytest.Snapshot) {
			for _, task := range s.Tasks {
				if task.Response != nil && !strings.Contains(string(task.Response), "it depends") {
					t.Errorf("task %s answered %s", task.ID, task.Response)
				}
			}
		},
	}
}

func TestACorrectProgramPassesEveryBoundary(t *testing.T) {
	t.Parallel()
	onereplytest.Boundaries(t, func(_ *testing.T, w *onereplytest.World) onereplytest.Case {
		return newProgram(w).testCase()
	})
}

func TestACorrectProgramPassesUnderEveryPolicy(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]onereply.Policy{
		"stop after an unknown outcome": {OnUnknown: onereply.UnknownStop},
		"first valid answer":            {Acceptance: onereply.FirstValid},
		"one attempt":                   {MaxAttempts: 1},
		"one call":                      {MaxCalls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			onereplytest.Boundaries(t, func(_ *testing.T, w *onereplytest.World) onereplytest.Case {
				p := newProgram(w)
				p.kind.Policy = policy
				return p.testCase()
			})
		})
	}
}

func TestAKindWithoutCallsSkipsOnlyTheBoundariesOfCalls(t *testing.T) {
	t.Parallel()
	onereplytest.Boundaries(t, func(_ *testing.T, w *onereplytest.World) onereplytest.Case {
		p := newProgram(w)
		p.kind.Work = func(context.Context, onereply.Attempt, ask) (answer, error) { return answer{Text: "it depends"}, nil }
		return p.testCase()
	})
}
