package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/openai"
	"github.com/onereply/onereply/provider/providertest"
	"github.com/onereply/onereply/provider/simulator"
)

func transport(t *testing.T) *http.Transport {
	t.Helper()
	tr := provider.NewTransport()
	tr.Proxy = nil
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func question(text string) provider.Request {
	return provider.Request{Messages: []provider.Message{{Role: provider.User, Text: text}}}
}

// stream answers one call with bytes as they are and returns what came of it.
func stream(t *testing.T, contentType, body string) (provider.Answer, *onereply.CallError) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	model, err := openai.NewCompatible("asked", server.URL+"/v1", "", transport(t))
	if err != nil {
		t.Fatal(err)
	}
	call := &providertest.Call{}
	var said strings.Builder
	answer, err := model.Start(t.Context(), call, question("?"), func(d string) error { said.WriteString(d); return nil })
	if err == nil && said.String() != answer.Text {
		t.Errorf("streamed %q and answered %q", said.String(), answer.Text)
	}
	return answer, onereply.Classify(err, call.Seen(), nil, time.Now())
}

func chunk(delta, finish string) string {
	return fmt.Sprintf(`data: {"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
}

func say(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return chunk(`{"content":`+string(raw)+`}`, "null")
}

func TestHowServersSpellAnAnswer(t *testing.T) {
	t.Parallel()
	const events, end = "text/event-stream", "data: [DONE]\n\n"
	stop := chunk("{}", `"stop"`)
	tests := []struct {
		name, contentType, body string
		want                    string
	}{
		{"both end marks", events, say("a") + say(" b") + stop + end, "a b"},
		{"the reason alone", events, say("a") + stop, "a"},
		{"[DONE] alone, as some servers end a whole answer", events, say("a") + end, "a"},
		{"[DONE] without a space", events, say("a") + "data:[DONE]\n\n", "a"},
		{"carriage returns", events, strings.ReplaceAll(say("a")+stop+end, "\n", "\r\n"), "a"},
		{"comments to keep the line open", events, ": PROCESSING\n\n" + say("a") + ": PROCESSING\n\n" + stop + end, "a"},
		{"another content type", "text/plain", say("a") + stop + end, "a"},
		{"a parameter in the content type", "text/event-stream; charset=utf-8", say("a") + stop + end, "a"},
		{"the last word beside the reason", events, say("a") + chunk(`{"content":" b"}`, `"stop"`) + end, "a b"},
		{"a reason nobody knows", events, say("a") + chunk("{}", `"eos"`) + end, "a"},
		{"content null", events, chunk(`{"role":"assistant","content":null}`, "null") + say("a") + stop + end, "a"},
		{"thinking in a field", events, chunk(`{"reasoning":"hm"}`, "null") + say("a") + stop + end, "a"},
		{"thinking in a block", events, say("<think>hm") + say(" so</think>\n\n") + say("a") + stop + end, "a"},
		{"thinking in a block, cut anywhere", events, say("\n<th") + say("ink>h</thi") + say("m</th") + say("ink") + say(">") + say("\n a") + stop + end, "a"},
		{"a block that is none", events, say("<th") + say("e a>") + stop + end, "<the a>"},
		{"a half block at the end", events, say("<thin") + stop + end, "<thin"},
		{"a block in the middle is text", events, say("a <think>b</think>") + stop + end, "a <think>b</think>"},
		{"white space before the text", events, say(" \n") + say("a") + stop + end, " \na"},
		{"the text of the mark inside the text", events, say("\ndata: [DONE]\n") + stop + end, "\ndata: [DONE]\n"},
		{"a refusal beside text", events, chunk(`{"refusal":"no"}`, "null") + say("a") + stop + end, "a"},
		{"empty choices", events, `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n" + say("a") + stop + end, "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			answer, e := stream(t, test.contentType, test.body)
			if e != nil || answer.Text != test.want || answer.Model == "" {
				t.Errorf("got %+v, %v; want %q", answer, e, test.want)
			}
		})
	}
}

func TestHowServersSpellAFailure(t *testing.T) {
	t.Parallel()
	const events, end = "text/event-stream", "data: [DONE]\n\n"
	tests := []struct {
		name, contentType, body string
		class                   onereply.Class
		code                    string
	}{
		{"[DONE] inside the text is no mark", events, say("\ndata: [DONE]\n"), onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"only thinking in a block", events, say("<think>hm</think>\n") + chunk("{}", `"stop"`) + end, onereply.ClassUseless, onereply.CodeEmptyAnswer},
		{"thinking that never ends", events, say("<think>hm") + chunk("{}", `"length"`) + end, onereply.ClassUseless, onereply.CodeEmptyAnswer},
		{"[DONE] and nothing else", events, end, onereply.ClassUseless, onereply.CodeEmptyAnswer},
		{"nothing at all", events, "", onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"only comments", events, ": PROCESSING\n\n", onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"a flat error event", events, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"m\"}\n\n", onereply.ClassUnknown, onereply.CodeProviderOverloaded},
		{"vLLM's error event", events, `data: {"object":"error","message":"m","type":"BadRequestError","code":400}` + "\n\n" + end, onereply.ClassRefusedPermanent, onereply.CodeProviderRejected},
		{"vLLM's error event after output", events, say("a") + `data: {"object":"error","message":"m","type":"BadRequestError","code":400}` + "\n\n" + end, onereply.ClassUnknown, onereply.CodeProviderRejected},
		{"OpenRouter's error event", events, `data: {"error":{"code":429,"message":"m"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n", onereply.ClassRefusedTemporary, onereply.CodeRateLimited},
		{"an error after the reason", events, say("a") + chunk("{}", `"stop"`) + `data: {"error":{"message":"m","type":"server_error"}}` + "\n\n", onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"a rate limit after thinking has begun", events, chunk(`{"reasoning_content":"hm"}`, "null") + `data: {"error":{"type":"rate_limit_error"}}` + "\n\n", onereply.ClassUnknown, onereply.CodeRateLimited},
		{"a rate limit after an empty field for thinking", events, chunk(`{"reasoning_content":null,"content":""}`, "null") + `data: {"error":{"type":"rate_limit_error"}}` + "\n\n", onereply.ClassRefusedTemporary, onereply.CodeRateLimited},
		{"the reason error", events, say("a") + chunk("{}", `"error"`) + end, onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"the old way to call a function", events, chunk(`{"function_call":{"name":"f","arguments":"{"}}`, "null") + end, onereply.ClassRefusedPermanent, onereply.CodeToolCalls},
		{"a tool by the reason alone", events, say("a") + chunk("{}", `"tool_calls"`) + end, onereply.ClassRefusedPermanent, onereply.CodeToolCalls},
		{"an error that is null", events, `data: {"error":null}` + "\n\n" + end, onereply.ClassUseless, onereply.CodeBadProviderResponse},
		{"a quota in an error object with 200", "application/json", `{"error":{"message":"m","code":"insufficient_quota"}}`, onereply.ClassRefusedPermanent, onereply.CodeInsufficientQuota},
		{"a list with 200", "application/json", `[]`, onereply.ClassUseless, onereply.CodeBadProviderResponse},
		{"a page under a false name", events, "<!DOCTYPE html><html><body>Sign in</body></html>", onereply.ClassUseless, onereply.CodeBadProviderResponse},
		{"an event without an end", events, "data: " + strings.Repeat("x", 9<<20), onereply.ClassUseless, onereply.CodeBadProviderResponse},
		{"an event of many lines without an end", events, strings.Repeat("data: "+strings.Repeat("x", 1<<10)+"\n", 9<<10), onereply.ClassUseless, onereply.CodeBadProviderResponse},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			answer, e := stream(t, test.contentType, test.body)
			if e == nil || e.Class != test.class || e.Code != test.code || answer != (provider.Answer{}) {
				t.Errorf("got %.200v, %+v; want %s (%s)", e, answer, test.class, test.code)
			}
		})
	}
}

func TestWhatIsSent(t *testing.T) {
	// Variables meant for other programs on this machine must not matter.
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	for key, want := range map[string]string{"": "", "sk-1": "Bearer sk-1"} {
		var header http.Header
		var path string
		var body map[string]any
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header, path = r.Header, r.URL.Path
			_ = json.NewDecoder(r.Body).Decode(&body)
			_, _ = io.WriteString(w, say("a")+"data: [DONE]\n\n")
		}))
		defer server.Close()
		model, err := openai.NewCompatible("hf.co/some/model:q4", server.URL+"/openai/v1", key, transport(t))
		if err != nil {
			t.Fatal(err)
		}
		request := provider.Request{Messages: []provider.Message{
			{Role: provider.System, Text: "s"}, {Role: provider.User, Text: "u"}, {Role: provider.Assistant, Text: "a"}, {Role: provider.User, Text: "<&>"},
		}}
		if _, err := model.Start(t.Context(), &providertest.Call{}, request, func(string) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if path != "/openai/v1/chat/completions" || header.Get("Authorization") != want {
			t.Errorf("path %s, authorization %q, want %q", path, header.Get("Authorization"), want)
		}
		for name, values := range header {
			if strings.Contains(fmt.Sprint(values), "from-the-environment") || strings.Contains(strings.ToLower(name), "idempotency") {
				t.Errorf("sent %s: %v", name, values)
			}
		}
		message := func(role, text string) any { return map[string]any{"role": role, "content": text} }
		wantBody := map[string]any{
			"model": "hf.co/some/model:q4", "stream": true, "stream_options": map[string]any{"include_usage": true},
			"messages": []any{message("system", "s"), message("user", "u"), message("assistant", "a"), message("user", "<&>")},
		}
		if diff := cmp.Diff(wantBody, body); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

func TestBaseURLsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "localhost:11434/v1", "ftp://host/v1", "http://", "http://user:secret@host/v1", "http://host/v1?key=secret", "http://host/v1#x", "http://ho st/", "://"} {
		if _, err := openai.NewCompatible("m", base, "", http.DefaultTransport); err == nil || strings.Contains(err.Error(), "user:secret") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestTheProviderNoticesAStop(t *testing.T) {
	t.Parallel()
	sim := simulator.New(simulator.Options{})
	server := httptest.NewServer(sim)
	defer server.Close()
	defer sim.Close()
	model, err := openai.NewCompatible("m", server.URL+"/v1", "", transport(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	_, err = model.Start(ctx, &providertest.Call{}, question("[[key k]] [[say one two three]] [[hang after 2]]"), func(string) error {
		cancel(onereply.ErrCancelled)
		return nil
	})
	if err == nil {
		t.Fatal("a cancelled call gave an answer")
	}
	limit, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	left := func(records []simulator.Record) bool { return len(records) == 1 && records[0].Left }
	if err := sim.Wait(limit, left); err != nil {
		t.Errorf("the provider never saw the client leave: %v", err)
	}
}

func TestAnErrorOfEmitEndsTheCall(t *testing.T) {
	t.Parallel()
	sim := simulator.New(simulator.Options{})
	server := httptest.NewServer(sim)
	defer server.Close()
	defer sim.Close()
	model, err := openai.NewCompatible("m", server.URL+"/v1", "", transport(t))
	if err != nil {
		t.Fatal(err)
	}
	emits := 0
	answer, err := model.Start(t.Context(), &providertest.Call{}, question("[[say one two three]]"), func(string) error {
		emits++
		return onereply.ErrFencedOut
	})
	if !errors.Is(err, onereply.ErrFencedOut) || emits != 1 || answer != (provider.Answer{}) {
		t.Errorf("got %+v, %v after %d emits", answer, err, emits)
	}
}

// The reason was given, so the answer is whole whatever happens to the line.
func TestAWholeAnswerSurvivesTheEndOfTheLine(t *testing.T) {
	t.Parallel()
	for name, ending := range map[string]func(r *http.Request){
		"cut after the reason":     func(*http.Request) { panic(http.ErrAbortHandler) },
		"silence after the reason": func(r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, say("a")+chunk("{}", `"stop"`))
				_ = http.NewResponseController(w).Flush()
				ending(r)
			}))
			defer server.Close()
			model, err := openai.NewCompatible("m", server.URL+"/v1", "", transport(t))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := model.Start(t.Context(), &providertest.Call{}, question("?"), func(string) error { return nil })
			if err != nil || answer.Text != "a" {
				t.Errorf("got %+v, %v", answer, err)
			}
		})
	}
}
