package onereplytest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/onereplytest"
	"github.com/onereply/onereply/store/sqlite"
)

// plantedVariable names the bug that TestPlanted plants, in a process of its own.
const plantedVariable = "ONEREPLYTEST_PLANTED"

// planted are bugs that users make, the boundary that finds each, and what it says.
var planted = []struct {
	bug      string
	plant    func(*program, *onereplytest.Case)
	boundary string
	says     string
}{
	{"a created hook that writes outside the transaction", func(p *program, c *onereplytest.Case) {
		var kept effects
		p.kind.Created = func(_ context.Context, _ onereply.Tx, all []onereply.Created[ask]) error {
			for _, one := range all {
				kept.add(one.Task.ID)
			}
			return nil
		}
		c.Created = kept.rows
	}, "submit: rolled back, then submitted again", "there is no such task: .* wrote outside the transaction"},
	{"an ended hook that writes outside the transaction", func(p *program, c *onereplytest.Case) {
		var kept effects
		p.kind.Ended = func(_ context.Context, _ onereply.Tx, all []onereply.Ended[ask, answer]) error {
			for _, one := range all {
				kept.add(one.Task.ID)
			}
			return nil
		}
		c.Ended = kept.rows
	}, "accept: rolled back once", "rows were doubled: task .* has 2 rows, want 1; .* writes outside the transaction"},
	{"an ended hook that keys its rows by the question", func(p *program, c *onereplytest.Case) {
		p.w.Exec(`CREATE TABLE by_text (text TEXT NOT NULL PRIMARY KEY, task_id TEXT NOT NULL)`)
		p.kind.Ended = func(ctx context.Context, tx onereply.Tx, all []onereply.Ended[ask, answer]) error {
			for _, one := range all {
				_, err := sqlite.Unwrap(tx).ExecContext(ctx, `INSERT OR REPLACE INTO by_text (text, task_id) VALUES (?, ?)`, one.In.Text, string(one.Task.ID))
				if err != nil {
					return err
				}
			}
			return nil
		}
		c.Ended = onereplytest.Query(`SELECT task_id FROM by_text`)
	}, "submit: the same inputs under another key are another task", "Ended: a row was lost: task .* has 0 rows, want 1"},
	{"an ended hook that sees only the first of a batch", func(p *program, _ *onereplytest.Case) {
		whole := p.kind.Ended
		p.kind.Ended = func(ctx context.Context, tx onereply.Tx, all []onereply.Ended[ask, answer]) error {
			return whole(ctx, tx, all[:1])
		}
	}, "accept: several in one transaction", "Ended: a row was lost: .*every entry"},
	{"a created hook that sees only the first of a batch", func(p *program, _ *onereplytest.Case) {
		whole := p.kind.Created
		p.kind.Created = func(ctx context.Context, tx onereply.Tx, all []onereply.Created[ask]) error {
			return whole(ctx, tx, all[:1])
		}
	}, "submit: several in one transaction", "Created: a row was lost"},
	{"a created hook that writes twice", func(p *program, c *onereplytest.Case) {
		whole := p.kind.Created
		p.w.Exec(`CREATE TABLE more (task_id TEXT NOT NULL)`)
		p.kind.Created = func(ctx context.Context, tx onereply.Tx, all []onereply.Created[ask]) error {
			_, err := sqlite.Unwrap(tx).ExecContext(ctx, `INSERT INTO more (task_id) VALUES (?)`, string(all[0].Task.ID))
			if err != nil {
				return err
			}
			return whole(ctx, tx, all)
		}
		c.Created = onereplytest.Query(`SELECT task_id FROM questions UNION ALL SELECT task_id FROM more`)
	}, "nothing goes wrong", "Created: rows were doubled: task .* has 2 rows, want 1"},
	{"a hook that refuses to run again", func(p *program, _ *onereplytest.Case) {
		var ran sync.Map
		whole := p.kind.Ended
		p.kind.Ended = func(ctx context.Context, tx onereply.Tx, all []onereply.Ended[ask, answer]) error {
			if _, before := ran.LoadOrStore(all[0].Task.ID, true); before {
				return nil // "already done"
			}
			return whole(ctx, tx, all)
		}
	}, "accept: rolled back once", "Ended: a row was lost"},
	{"work that saves by itself", func(p *program, _ *onereplytest.Case) {
		whole := p.kind.Work
		p.kind.Work = func(ctx context.Context, a onereply.Attempt, in ask) (answer, error) {
			out, err := whole(ctx, a, in)
			if err == nil {
				err = p.w.Store.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
					_, err := sqlite.Unwrap(tx).ExecContext(ctx, `INSERT INTO answers (task_id, text) VALUES (?, ?)`, string(a.Assignment().Task.ID), out.Text)
					return err
				})
			}
			return out, err
		}
		p.kind.Ended = nil
	}, "accept: a zombie returns while its successor works", "Ended: rows were doubled: .*Work saves by itself"},
	{"work that ignores its context", func(p *program, _ *onereplytest.Case) {
		whole := p.kind.Work
		p.kind.Work = func(ctx context.Context, a onereply.Attempt, in ask) (out answer, err error) {
			_ = whole
			err = a.Call(ctx, func(_ context.Context, c onereply.Call) error {
				out, err = p.post(context.Background(), c, in)
				return err
			})
			return out, err
		}
	}, "cancel: in the call", "Work ignores its context: five seconds after its task was cancelled"},
	{"work that takes half an answer", func(p *program, _ *onereplytest.Case) {
		p.model = forgiving{p.model}
	}, "call: the answer breaks off in the middle", "Work takes for a whole answer what is none"},
	{"work that sends without counting", func(p *program, _ *onereplytest.Case) {
		p.kind.Work = func(ctx context.Context, a onereply.Attempt, in ask) (out answer, err error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://model.example/answers", strings.NewReader(in.Text))
			if err != nil {
				return out, err
			}
			response, err := (&http.Client{Transport: p.model}).Do(request)
			if err != nil {
				return out, err
			}
			defer response.Body.Close()
			return out, json.NewDecoder(response.Body).Decode(&out)
		}
	}, "nothing goes wrong", "1 request reached the provider and 0 calls counted"},
	{"work that hides a refusal", func(p *program, _ *onereplytest.Case) {
		whole := p.kind.Work
		p.kind.Work = func(ctx context.Context, a onereply.Attempt, in ask) (answer, error) {
			if out, err := whole(ctx, a, in); err == nil {
				return out, nil
			}
			return answer{Text: "it depends; something went wrong"}, nil
		}
	}, "call: the provider refuses for good", "a call that was refused for good .* fails it at once"},
}

// effects are kept where no transaction reaches.
type effects struct {
	mu  sync.Mutex
	ids []onereply.TaskID
}

func (e *effects) add(id onereply.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids = append(e.ids, id)
}

func (e *effects) rows(context.Context, *sql.DB) ([]onereply.TaskID, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]onereply.TaskID(nil), e.ids...), nil
}

// forgiving mends what broke off, as a lenient client does.
type forgiving struct{ http.RoundTripper }

func (f forgiving) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := f.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &mended{body: response.Body}
	return response, nil
}

// TestPlanted fails, in a process of its own.
func TestPlanted(t *testing.T) {
	bug := os.Getenv(plantedVariable)
	if bug == "" {
		t.Skip("run by TestEveryPlantedBugIsFoundAndNamed in a process of its own")
	}
	for _, p := range planted {
		if p.bug != bug {
			continue
		}
		onereplytest.Boundaries(t, func(_ *testing.T, w *onereplytest.World) onereplytest.Case {
			user := newProgram(w)
			c := user.testCase()
			c.Check = nil
			p.plant(user, &c)
			c.Kind = user.kind.Kind()
			return c
		})
	}
}

func TestEveryPlantedBugIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	for _, p := range planted {
		t.Run(p.bug, func(t *testing.T) {
			t.Parallel()
			boundary := strings.ReplaceAll(p.boundary, " ", "_")
			run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPlanted$/^"+regexp.QuoteMeta(boundary)+"$")
			run.Env = append(os.Environ(), plantedVariable+"="+p.bug)
			out, err := run.CombinedOutput()
			if err == nil {
				t.Fatalf("the boundary %q passed:\n%s", p.boundary, out)
			}
			if !strings.Contains(string(out), "--- FAIL: TestPlanted/"+boundary) {
				t.Errorf("the failure does not name the boundary %q:\n%s", p.boundary, out)
			}
			if !regexp.MustCompile(p.says).Match(out) {
				t.Errorf("the failure does not say %q:\n%s", p.says, out)
			}
		})
	}
}

// mended is a body that ends well whatever happened to the connection.
type mended struct {
	body io.ReadCloser
	tail *strings.Reader
}

func (m *mended) Read(b []byte) (int, error) {
	if m.tail != nil {
		return m.tail.Read(b)
	}
	n, err := m.body.Read(b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		m.tail, err = strings.NewReader(`"}`), nil
	}
	return n, err
}

func (m *mended) Close() error { return m.body.Close() }
