package simulator_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/onereply/onereply/provider/simulator"
)

// send sends one request and returns status and body.
func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

func TestAResponseInTheBackgroundCanBeLookedUp(t *testing.T) {
	t.Parallel()
	sim, url := start(t, simulator.Options{})
	base := strings.TrimSuffix(url, "/chat/completions") + "/responses"
	_, first := send(t, http.MethodPost, base, `{"model":"m","stream":true,"background":true,"input":"[[say one two three]] [[no-end 1]]"}`)
	if !strings.Contains(first, `"id":"resp_1"`) || !strings.Contains(first, `"delta":"one "`) || strings.Contains(first, "three") || strings.Contains(first, "response.completed") {
		t.Fatalf("the stream that breaks off is\n%s", first)
	}
	if _, rest := send(t, http.MethodGet, base+"/resp_1?stream=true&starting_after=4", ""); strings.Contains(rest, `"delta":"one "`) || !strings.Contains(rest, `"delta":"three"`) || !strings.Contains(rest, "response.completed") {
		t.Errorf("the stream that goes on is\n%s", rest)
	}
	if status, found := send(t, http.MethodGet, base+"/resp_1", ""); status != 200 || !strings.Contains(found, `"text":"one two three"`) || !strings.Contains(found, `"status":"completed"`) {
		t.Errorf("looked up: %d %s", status, found)
	}
	if status, kept := send(t, http.MethodPost, base+"/resp_1/cancel", ""); status != 200 || !strings.Contains(kept, `"status":"completed"`) {
		t.Errorf("a cancel after the end: %d %s", status, kept)
	}
	if status, _ := send(t, http.MethodGet, base+"/resp_2", ""); status != 404 {
		t.Errorf("an id that nobody knows: %d", status)
	}
	if sim.Total() != 1 {
		t.Errorf("%d requests are counted, want the one that started work", sim.Total())
	}
	want := simulator.Operation{ID: "resp_1", Key: "[[say one two three]] [[no-end 1]]", Status: "completed", Lookups: 1, Streams: 1, Cancels: 1}
	if got := sim.Operations(); len(got) != 1 || got[0] != want {
		t.Errorf("operations %+v, want %+v", got, want)
	}
}

func TestAResponseInTheBackgroundIsCancelled(t *testing.T) {
	t.Parallel()
	sim, url := start(t, simulator.Options{})
	base := strings.TrimSuffix(url, "/chat/completions") + "/responses"
	streamed := make(chan string, 1)
	go func() {
		_, body := send(t, http.MethodPost, base, `{"model":"m","stream":true,"background":true,"input":"[[say one two]] [[slow 10m]]"}`)
		streamed <- body
	}()
	for sim.Wait(t.Context(), func(all []simulator.Record) bool { return len(all) == 1 }) != nil || len(sim.Operations()) == 0 {
	}
	for range 2 { // the second changes nothing
		if status, ended := send(t, http.MethodPost, base+"/resp_1/cancel", ""); status != 200 || !strings.Contains(ended, `"status":"cancelled"`) {
			t.Errorf("cancelled: %d %s", status, ended)
		}
	}
	if body := <-streamed; !strings.Contains(body, "response.cancelled") || strings.Contains(body, "two") {
		t.Errorf("the stream of what was cancelled is\n%s", body)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	script, err := simulator.ParseScript([]byte(`[{"match":"weather","markers":"[[1: status 529]] [[2+: say sunny]]"},{"markers":"[[say other]]"}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		prompt  string
		attempt int
		status  int
		text    string
	}{
		{"the weather?", 1, 529, "This is the simulator's scripted answer to: the weather?"},
		{"the weather?", 3, 0, "sunny"},
		{"why?", 1, 0, "other"},
	} {
		plan, ok := script(simulator.Request{Prompt: test.prompt, Attempt: test.attempt})
		if !ok || plan.Status != test.status || plan.Text != test.text {
			t.Errorf("%q, %d: %+v %v", test.prompt, test.attempt, plan, ok)
		}
	}
	for _, bad := range []string{"", "{}", `[{"markers":"[[nonsense]]"}]`, `[{"markers":"[[2: nonsense]]"}]`, `[{"markers":"say x"}]`, `[{"plan":"[[empty]]"}]`} {
		if _, err := simulator.ParseScript([]byte(bad)); err == nil {
			t.Errorf("the script %s was taken", bad)
		}
	}
}
