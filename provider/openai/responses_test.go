package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/openai"
	"github.com/onereply/onereply/provider/providertest"
	"github.com/onereply/onereply/provider/simulator"
)

// responsesModel makes responses with waits that fit a test.
func responsesModel(background bool) func(baseURL string, transport http.RoundTripper) (provider.Model, error) {
	return func(baseURL string, transport http.RoundTripper) (provider.Model, error) {
		return openai.NewResponses("simulated", openai.ResponsesOptions{
			BaseURL: baseURL, APIKey: "sk-test-secret", Transport: transport, Background: background,
			MissingFor: 1500 * time.Millisecond, QueuedFor: 1500 * time.Millisecond, QuietFor: 150 * time.Millisecond, PollEvery: 10 * time.Millisecond,
		})
	}
}

func TestResponsesConform(t *testing.T) {
	t.Parallel()
	for name, background := range map[string]bool{"in the background": true, "in the foreground": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, providertest.Adapter{
				New:      responsesModel(background),
				Provider: func() providertest.Provider { return simulator.New(simulator.Options{}) },
				Recovers: background,
			})
		})
	}
}

// startCall starts a call and returns what came of it.
func startCall(t *testing.T, model provider.Model, r provider.Request) (provider.Answer, *onereply.CallError, *providertest.Call) {
	t.Helper()
	call := &providertest.Call{}
	answer, err := model.Start(t.Context(), call, r, func(string) error { return nil })
	return answer, onereply.Classify(err, call.Seen(), nil, time.Now()), call
}

func TestWhatIsSentToResponses(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
	type sent struct {
		Method, URL, Body string
	}
	var got []sent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, sent{r.Method, r.URL.String(), string(raw)})
		for name, values := range r.Header {
			if strings.Contains(fmt.Sprint(values), "from-the-environment") || strings.Contains(strings.ToLower(name), "idempotency") {
				t.Errorf("sent %s: %v", name, values)
			}
		}
		if auth := r.Header.Get("Authorization"); auth != "Bearer sk-test-secret" {
			t.Errorf("%s: authorization %q", r.Method, auth)
		}
		response := `{"id":"resp_9","status":%q,"model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"a b"}]}]}`
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/cancel"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, response, "cancelled")
		case r.Method == http.MethodPost:
			fmt.Fprintf(w, "data: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":%s}\n\n", fmt.Sprintf(response, "queued"))
			fmt.Fprint(w, "data: {\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"delta\":\"a\"}\n\n")
		case r.URL.RawQuery == "":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, response, "in_progress")
		default:
			fmt.Fprintf(w, "data: {\"type\":\"response.completed\",\"sequence_number\":8,\"response\":%s}\n\n", fmt.Sprintf(response, "completed"))
		}
	}))
	defer server.Close()
	model, err := responsesModel(true)(server.URL+"/v1", transport(t))
	if err != nil {
		t.Fatal(err)
	}
	request := provider.Request{Messages: []provider.Message{
		{Role: provider.System, Text: "s"}, {Role: provider.User, Text: "u"}, {Role: provider.Assistant, Text: "a"}, {Role: provider.User, Text: "<&>"},
	}}
	answer, failed, call := startCall(t, model, request)
	if failed != nil || answer.Text != "a b" || !slices.Equal(call.Operations(), []string{"resp_9"}) {
		t.Errorf("got %+v, %v, operations %q", answer, failed, call.Operations())
	}
	if err := model.(provider.Recoverer).Cancel(t.Context(), "resp_9"); err != nil {
		t.Error(err)
	}
	want := []sent{
		{"POST", "/v1/responses", `{"model":"simulated","background":true,"instructions":"s","store":true,"input":[{"content":"u","role":"user"},{"content":"a","role":"assistant"},{"content":"<&>","role":"user"}],"stream":true}`},
		{"GET", "/v1/responses/resp_9", ""},
		{"GET", "/v1/responses/resp_9?starting_after=7&stream=true", ""},
		{"POST", "/v1/responses/resp_9/cancel", ""},
	}
	for i := range got {
		got[i].Body = sortedJSON(t, got[i].Body)
	}
	for i := range want {
		want[i].Body = sortedJSON(t, want[i].Body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func sortedJSON(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Without a place to keep the id nobody could find the response again, so it is
// not left running.
func TestAResponseWhoseIDIsNotSavedIsCancelled(t *testing.T) {
	t.Parallel()
	sim := simulator.New(simulator.Options{})
	server := httptest.NewServer(sim)
	defer server.Close()
	defer sim.Close()
	model, err := responsesModel(true)(server.URL+"/v1", transport(t))
	if err != nil {
		t.Fatal(err)
	}
	call := &unsaved{}
	_, err = model.Start(t.Context(), call, question("[[hang after 1]] why?"), func(string) error {
		t.Error("text came although the operation was not saved")
		return nil
	})
	if !errors.Is(err, onereply.ErrFencedOut) {
		t.Errorf("got %v", err)
	}
	if got := sim.Operations(); len(got) != 1 || got[0].Status != "cancelled" || got[0].Cancels != 1 {
		t.Errorf("operations %+v", got)
	}
}

type unsaved struct{ providertest.Call }

func (*unsaved) Checkpoint(context.Context, string) error { return onereply.ErrFencedOut }

// A drain or a lost lease leaves the response to whoever takes over.
func TestAResponseIsLeftRunningForWhoeverTakesOver(t *testing.T) {
	t.Parallel()
	sim := simulator.New(simulator.Options{})
	server := httptest.NewServer(sim)
	defer server.Close()
	defer sim.Close()
	model, err := responsesModel(true)(server.URL+"/v1", transport(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, stop := range []func(cancel context.CancelCauseFunc) error{
		func(cancel context.CancelCauseFunc) error { cancel(onereply.ErrDraining); return nil },
		func(context.CancelCauseFunc) error { return onereply.ErrFencedOut },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := model.Start(ctx, &providertest.Call{}, question("[[say one two]] [[hang after 1]] why?"), func(string) error { return stop(cancel) })
		cancel(nil)
		if got := sim.Operations(); err == nil || len(got) != i+1 || got[i].Status != "in_progress" || got[i].Cancels != 0 {
			t.Errorf("%v; operations %+v", err, got)
		}
	}
}

// A line that dies without a word is left after a while; the response is found.
func TestAQuietStreamIsLookedUp(t *testing.T) {
	t.Parallel()
	var posts, lookups atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "data: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"status\":\"queued\"}}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		lookups.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"found"}]}]}`)
	}))
	defer server.Close()
	model, err := responsesModel(true)(server.URL+"/v1", transport(t))
	if err != nil {
		t.Fatal(err)
	}
	answer, failed, _ := startCall(t, model, question("?"))
	if failed != nil || answer.Text != "found" || posts.Load() != 1 || lookups.Load() != 1 {
		t.Errorf("got %+v, %v; %d posts, %d lookups", answer, failed, posts.Load(), lookups.Load())
	}
}

// An answer to a lookup that says nothing of the response leaves it open.
func TestALookupThatIsRefusedLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for code, last := range map[int]bool{401: true, 403: true, 500: false, 429: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var lookups atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if lookups.Add(1) > 2 && !last {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"found"}]}]}`)
					return
				}
				w.WriteHeader(code)
			}))
			defer server.Close()
			model, err := responsesModel(true)(server.URL+"/v1", transport(t))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := model.(provider.Recoverer).Recover(t.Context(), "resp_1", func(string) error { return nil })
			if !last {
				if err != nil || answer.Text != "found" || lookups.Load() != 3 {
					t.Errorf("got %+v, %v after %d lookups", answer, err, lookups.Load())
				}
				return
			}
			e := onereply.Classify(err, onereply.Observation{}, nil, time.Now())
			if e == nil || e.Class != onereply.ClassUnknown || e.Final || lookups.Load() != 1 {
				t.Errorf("got %v after %d lookups", e, lookups.Load())
			}
		})
	}
}
