package onereply_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
)

type ask struct {
	Text  string  `json:"text"`
	Model string  `json:"model,omitempty"`
	Heat  float64 `json:"heat"`
}

type answer struct {
	Text string  `json:"text"`
	Odd  float64 `json:"odd"`
}

// attempt is an onereply.Attempt that only knows what was assigned.
type attempt struct {
	onereply.Attempt
	input string
}

func (a attempt) Assignment() onereply.Assignment {
	return onereply.Assignment{Input: json.RawMessage(a.input)}
}

func TestASubmissionIsBoundToItsInput(t *testing.T) {
	t.Parallel()
	plain := &onereply.Definition[ask, answer]{Name: "reply"}
	submit := func(d *onereply.Definition[ask, answer], in ask) onereply.Submission {
		s, err := d.Submission("scope", "key", in)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	got := submit(plain, ask{Text: "why?"})
	want := onereply.Submission{
		Scope: "scope", Action: "reply", Key: "key", Kind: "reply",
		Input:       json.RawMessage(`{"text":"why?","heat":0}`),
		Fingerprint: onereply.Fingerprint("reply", []byte(`{"text":"why?"}`)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if string(submit(plain, ask{Text: "why?", Heat: 1}).Fingerprint) == string(got.Fingerprint) {
		t.Error("another input has the same fingerprint")
	}
	if string(submit(&onereply.Definition[ask, answer]{Name: "other"}, ask{Text: "why?"}).Fingerprint) == string(got.Fingerprint) {
		t.Error("another kind has the same fingerprint")
	}
	own := &onereply.Definition[ask, answer]{Name: "reply", Bind: func(in ask) ([]byte, error) { return []byte(in.Text), nil }}
	if string(submit(own, ask{Text: "a", Heat: 1}).Fingerprint) != string(submit(own, ask{Text: "a", Heat: 2}).Fingerprint) {
		t.Error("what Bind leaves out was bound")
	}
}

func TestSubmissionsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	plain := &onereply.Definition[ask, answer]{Name: "reply"}
	if _, err := plain.Submission("s", "k", ask{Heat: math.NaN()}); !errors.Is(err, onereply.ErrInvalid) {
		t.Errorf("an input that is no JSON: %v", err)
	}
	refusing := &onereply.Definition[ask, answer]{Name: "reply", Bind: func(ask) ([]byte, error) { return nil, errSDK }}
	if _, err := refusing.Submission("s", "k", ask{}); !errors.Is(err, errSDK) {
		t.Errorf("Bind's own error: %v", err)
	}
}

func TestTheErasedKindDecodesAndEncodes(t *testing.T) {
	t.Parallel()
	d := &onereply.Definition[ask, answer]{
		Name: "reply", Policy: onereply.Policy{MaxCalls: 1},
		Work: func(_ context.Context, _ onereply.Attempt, in ask) (answer, error) {
			switch in.Text {
			case "fail":
				return answer{}, errSDK
			case "odd":
				return answer{Odd: math.Inf(1)}, nil
			}
			return answer{Text: "re: " + in.Text}, nil
		},
	}
	k := d.Kind()
	if k.Name != "reply" || k.Policy.MaxCalls != 1 || k.Policy.MaxAttempts != 5 {
		t.Errorf("kind %+v", k)
	}
	if k.Created != nil || k.Ended != nil {
		t.Error("hooks appeared from nowhere")
	}
	out, err := k.Work(t.Context(), attempt{input: `{"text":"hi"}`})
	if err != nil || string(out) != `{"text":"re: hi","odd":0}` {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err := k.Work(t.Context(), attempt{input: `{"text":"fail"}`}); !errors.Is(err, errSDK) {
		t.Errorf("the work's error: %v", err)
	}
	// Neither an input nor a response that cannot be read gets better by repeating.
	for input, code := range map[string]string{`{"text":7}`: "invalid_input", `{"text":"odd"}`: "invalid_response"} {
		var e *onereply.CallError
		if _, err := k.Work(t.Context(), attempt{input: input}); !errors.As(err, &e) || e.Class != onereply.ClassRefusedPermanent || e.Code != code {
			t.Errorf("%s: got %v, want %s", input, err, code)
		}
	}
}

func TestHooksGetTypedTasks(t *testing.T) {
	t.Parallel()
	var created []onereply.Created[ask]
	var ended []onereply.Ended[ask, answer]
	d := &onereply.Definition[ask, answer]{
		Name: "reply",
		Created: func(_ context.Context, _ onereply.Tx, c []onereply.Created[ask]) error {
			created = c
			return nil
		},
		Ended: func(_ context.Context, _ onereply.Tx, e []onereply.Ended[ask, answer]) error {
			ended = e
			return nil
		},
	}
	k := d.Kind()
	if k.Work != nil {
		t.Error("work appeared from nowhere")
	}
	tasks := []onereply.Task{
		{ID: "1", Status: onereply.StatusCompleted, Input: json.RawMessage(`{"text":"a"}`), Response: json.RawMessage(`{"text":"A"}`)},
		{ID: "2", Status: onereply.StatusFailed, Input: json.RawMessage(`{"text":"b"}`)},
		{ID: "3", Status: onereply.StatusCancelled, Input: json.RawMessage(`{"text":"c"}`)},
	}
	if err := k.Created(t.Context(), nil, tasks); err != nil {
		t.Fatal(err)
	}
	if err := k.Ended(t.Context(), nil, tasks); err != nil {
		t.Fatal(err)
	}
	wantCreated := []onereply.Created[ask]{{Task: tasks[0], In: ask{Text: "a"}}, {Task: tasks[1], In: ask{Text: "b"}}, {Task: tasks[2], In: ask{Text: "c"}}}
	if diff := cmp.Diff(wantCreated, created); diff != "" {
		t.Error(diff)
	}
	wantEnded := []onereply.Ended[ask, answer]{
		{Task: tasks[0], In: ask{Text: "a"}, Out: &answer{Text: "A"}},
		{Task: tasks[1], In: ask{Text: "b"}},
		{Task: tasks[2], In: ask{Text: "c"}},
	}
	if diff := cmp.Diff(wantEnded, ended); diff != "" {
		t.Error(diff)
	}
	created, ended = nil, nil
	bad := []onereply.Task{{Status: onereply.StatusCompleted, Input: json.RawMessage(`{}`), Response: json.RawMessage(`7`)}}
	if err := k.Ended(t.Context(), nil, bad); err == nil || ended != nil {
		t.Errorf("a response that cannot be read reached the hook: %v", err)
	}
	bad[0].Input = json.RawMessage(`[`)
	if err := k.Created(t.Context(), nil, bad); err == nil || created != nil {
		t.Errorf("an input that cannot be read reached the hook: %v", err)
	}
}
