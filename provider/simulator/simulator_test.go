package simulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply/provider/simulator"
)

func start(t *testing.T, o simulator.Options) (*simulator.Simulator, string) {
	t.Helper()
	sim := simulator.New(o)
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		sim.Close()
		sim.Close()
		server.Close()
	})
	return sim, server.URL + "/v1/chat/completions"
}

// ask posts the messages, user and assistant in turn, and returns status and body.
func ask(ctx context.Context, url string, messages ...string) (int, string, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	in := map[string]any{"model": "m", "stream": true}
	var list []message
	for i, text := range messages {
		list = append(list, message{Role: []string{"user", "assistant"}[i%2], Content: text})
	}
	in["messages"] = list
	raw, err := json.Marshal(in)
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestParsePlan(t *testing.T) {
	t.Parallel()
	plain := func(change func(*simulator.Plan)) simulator.Plan {
		p := simulator.Plan{Text: "x", Finish: "stop", After: simulator.Everything}
		change(&p)
		return p
	}
	tests := []struct {
		prompt string
		n      int
		want   simulator.Plan
	}{
		{"why?", 1, plain(func(p *simulator.Plan) { p.Text = "This is the simulator's scripted answer to: why?" })},
		{"[[say x]]", 1, plain(func(*simulator.Plan) {})},
		{"[[delay 2s]] [[slow 50ms]] [[say x]]", 1, plain(func(p *simulator.Plan) { p.Delay, p.Pace = 2*time.Second, 50*time.Millisecond })},
		{"[[say x]] [[cut before]]", 1, plain(func(p *simulator.Plan) { p.Fault, p.After = simulator.Cut, simulator.Before })},
		{"[[say x]] [[reset]]", 1, plain(func(p *simulator.Plan) { p.Fault, p.After = simulator.Reset, simulator.Before })},
		{"[[say x]] [[hang after 3]]", 1, plain(func(p *simulator.Plan) { p.Fault, p.After = simulator.Hang, 3 })},
		{"[[say x]] [[no-end]]", 1, plain(func(p *simulator.Plan) { p.Fault = simulator.NoEnd })},
		{"[[say x]] [[error-after 2 c]]", 1, plain(func(p *simulator.Plan) { p.Fault, p.After, p.Code = simulator.ErrorEvent, 2, "c" })},
		{"[[say x]] [[status 429 c]] [[retry-after soon]]", 1, plain(func(p *simulator.Plan) {
			p.Fault, p.Status, p.Code, p.RetryAfter = simulator.Status, 429, "c", "soon"
		})},
		{"[[1: status 500]] [[2: say x]]", 2, plain(func(*simulator.Plan) {})},
		{"[[1: status 500]] [[2+: say x]]", 7, plain(func(*simulator.Plan) {})},
		{"[[1: say y]] [[say x]]", 3, plain(func(*simulator.Plan) {})},
		{"[[say x]] [[1: say y]]", 1, plain(func(p *simulator.Plan) { p.Text = "y" })},
	}
	for _, test := range tests {
		got, err := simulator.ParsePlan(test.prompt, test.n)
		if err != nil {
			t.Errorf("%s: %v", test.prompt, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s for request %d: -want +got\n%s", test.prompt, test.n, diff)
		}
	}
}

func TestMarkersThatAreSlips(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{"[[sya x]]", "[[]]", "[[cut later]]", "[[cut after]]", "[[cut after -1]]", "[[status]]", "[[status 99]]", "[[redirect 200]]",
		"[[delay soon]]", "[[slow 5]]", "[[big 0]]", "[[big 5000]]", "[[usage 1]]", "[[no-end x]]", "[[99999999999999999999: say x]]"} {
		if got, err := simulator.ParsePlan(prompt, 1); err == nil {
			t.Errorf("%s was taken for %+v", prompt, got)
		}
	}
	_, url := start(t, simulator.Options{})
	if status, body, err := ask(t.Context(), url, "[[sya x]]"); err != nil || status != 400 || !strings.Contains(body, "sya x") {
		t.Errorf("got %d %s, %v", status, body, err)
	}
}

func TestASequenceOfAnswersPerPrompt(t *testing.T) {
	t.Parallel()
	sim, url := start(t, simulator.Options{})
	prompt := "[[1: status 500]] [[2: say ok]] [[3+: status 429]] [[key k]]"
	for i, want := range []int{500, 200, 429, 429} {
		if status, body, err := ask(t.Context(), url, prompt); err != nil || status != want || want == 200 && !strings.Contains(body, `"ok"`) {
			t.Errorf("request %d: got %d %s, %v", i+1, status, body, err)
		}
	}
	// Another prompt counts for itself, a second turn reads only its own markers.
	if status, _, err := ask(t.Context(), url, "[[status 500]] a", "b", "and now?"); err != nil || status != 200 {
		t.Errorf("got %d, %v", status, err)
	}
	if sim.Requests("k") != 4 || sim.Requests("and now?") != 1 || sim.Requests("other") != 0 || sim.Total() != 5 {
		t.Errorf("counted %d, %d, %d of %d", sim.Requests("k"), sim.Requests("and now?"), sim.Requests("other"), sim.Total())
	}
	records := sim.For("k")
	for i, r := range records {
		if r.Attempt != i+1 || r.Prompt != prompt || r.Model != "m" || r.Path != "/v1/chat/completions" || r.Started.IsZero() || r.Ended.Before(r.Started) || r.Left {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if records[1].Said != "ok" || records[0].Said != "" {
		t.Errorf("said %q and %q", records[0].Said, records[1].Said)
	}
}

func TestAScriptOfTheProgramsOwn(t *testing.T) {
	t.Parallel()
	_, url := start(t, simulator.Options{Script: func(r simulator.Request) (simulator.Plan, bool) {
		if len(r.Messages) == 3 {
			return simulator.Plan{}, false
		}
		return simulator.Plan{Text: "from " + r.Prompt, Finish: "stop"}, true
	}})
	if _, body, err := ask(t.Context(), url, "script"); err != nil || !strings.Contains(body, `"from "`) || !strings.Contains(body, `"script"`) || !strings.Contains(body, "[DONE]") {
		t.Errorf("got %s, %v", body, err)
	}
	if _, body, err := ask(t.Context(), url, "a", "b", "[[say marked]]"); err != nil || !strings.Contains(body, "marked") {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestRequestsThatRealProvidersRefuse(t *testing.T) {
	t.Parallel()
	sim, url := start(t, simulator.Options{})
	for name, body := range map[string]string{
		"no JSON":            `{`,
		"no message":         `{"stream":true,"messages":[]}`,
		"an empty message":   `{"stream":true,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":" "},{"role":"user","content":"b"}]}`,
		"content of numbers": `{"stream":true,"messages":[{"role":"user","content":7}]}`,
		"not streamed":       `{"messages":[{"role":"user","content":"a"}]}`,
	} {
		response, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != 400 {
			t.Errorf("%s: status %d", name, response.StatusCode)
		}
	}
	parts := `{"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"[[say "},{"type":"text","text":"parts]]"}]}]}`
	response, err := http.Post(url, "application/json", strings.NewReader(parts))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || !strings.Contains(string(body), `"parts"`) {
		t.Errorf("content in parts: %s, %v", body, err)
	}
	if strings.Contains(string(body), "usage") {
		t.Error("usage came unasked")
	}
	for path, want := range map[string]int{"/v1/models": 200, "/v1/nothing": 404} {
		response, err := http.Get(strings.TrimSuffix(url, "/v1/chat/completions") + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("GET %s: %d", path, response.StatusCode)
		}
	}
	if len(sim.Records()) != 2 {
		t.Errorf("%d records, want the one not streamed and the one answered", len(sim.Records()))
	}
}

func TestCloseEndsWhatHangsAndWaits(t *testing.T) {
	t.Parallel()
	sim, url := start(t, simulator.Options{})
	var open sync.WaitGroup
	for _, prompt := range []string{"[[hang]]", "[[delay 1h]]", "[[say a b]] [[slow 1h]]", "[[say a b]] [[hang after 1]]"} {
		open.Go(func() { _, _, _ = ask(t.Context(), url, prompt) })
	}
	limit, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	if err := sim.Wait(limit, func(r []simulator.Record) bool { return len(r) == 4 }); err != nil {
		t.Fatal(err)
	}
	sim.Close()
	open.Wait()
	if err := sim.Wait(limit, func(r []simulator.Record) bool {
		for _, record := range r {
			if record.Ended.IsZero() {
				return false
			}
		}
		return true
	}); err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	sim := simulator.New(simulator.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := sim.Wait(ctx, func([]simulator.Record) bool { return false }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestOldRecordsGo(t *testing.T) {
	t.Parallel()
	sim, url := start(t, simulator.Options{Keep: 2})
	for _, prompt := range []string{"a", "b", "c"} {
		if _, _, err := ask(t.Context(), url, prompt); err != nil {
			t.Fatal(err)
		}
	}
	records := sim.Records()
	if len(records) != 2 || records[0].Prompt != "b" || sim.Total() != 3 || sim.Requests("a") != 0 || sim.Requests("c") != 1 {
		t.Errorf("kept %+v of %d", records, sim.Total())
	}
}

func TestManyAtOnceAreCountedRight(t *testing.T) {
	t.Parallel()
	sim, url := start(t, simulator.Options{})
	var open sync.WaitGroup
	for range 8 {
		open.Go(func() {
			for range 10 {
				if _, _, err := ask(t.Context(), url, "[[key k]] [[say a b c]]"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	open.Wait()
	seen := map[int]bool{}
	for _, r := range sim.For("k") {
		seen[r.Attempt] = true
	}
	if sim.Requests("k") != 80 || len(seen) != 80 {
		t.Errorf("counted %d with %d numbers", sim.Requests("k"), len(seen))
	}
}
