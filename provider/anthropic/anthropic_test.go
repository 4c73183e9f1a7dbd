package anthropic_test

import (
	"encoding/json"
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
	"github.com/onereply/onereply/provider/anthropic"
	"github.com/onereply/onereply/provider/providertest"
	"github.com/onereply/onereply/provider/simulator"
)

func TestMessagesConform(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Adapter{
		New: func(baseURL string, transport http.RoundTripper) (provider.Model, error) {
			// This SDK's base URL has no version in it.
			return anthropic.New("simulated", anthropic.Options{BaseURL: strings.TrimSuffix(baseURL, "/v1"), APIKey: "sk-test-secret", Transport: transport})
		},
		Provider: func() providertest.Provider { return simulator.New(simulator.Options{}) },
	})
}

func transport(t *testing.T) *http.Transport {
	t.Helper()
	tr := provider.NewTransport()
	tr.Proxy = nil
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// answer answers one call with events as they are and returns what came of it.
func answer(t *testing.T, events ...string) (provider.Answer, *onereply.CallError, *providertest.Call) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			var named struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal([]byte(e), &named); err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", named.Type, e)
		}
	}))
	defer server.Close()
	model, err := anthropic.New("asked", anthropic.Options{BaseURL: server.URL, Transport: transport(t)})
	if err != nil {
		t.Fatal(err)
	}
	call := &providertest.Call{}
	got, err := model.Start(t.Context(), call, provider.Request{Messages: []provider.Message{{Role: provider.User, Text: "?"}}}, func(string) error { return nil })
	return got, onereply.Classify(err, call.Seen(), nil, time.Now()), call
}

const (
	started = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":20,"output_tokens":1}}}`
	opened  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	said    = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
	stopped = `{"type":"message_stop"}`
	ping    = `{"type":"ping"}`
)

func because(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":7}}`, reason)
}

func TestHowMessagesEnd(t *testing.T) {
	t.Parallel()
	fault := func(kind string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"m"},"request_id":"req_1"}`, kind)
	}
	tests := []struct {
		name   string
		events []string
		text   string
		class  onereply.Class
		code   string
	}{
		{"the end of a turn", []string{started, ping, opened, said, ping, because("end_turn"), stopped}, "a", "", ""},
		{"a stop sequence", []string{started, opened, said, because("stop_sequence"), stopped}, "a", "", ""},
		{"a reason nobody knows", []string{started, opened, said, because("weary"), stopped}, "a", "", ""},
		{"the context window is full", []string{started, opened, said, because("model_context_window_exceeded"), stopped}, "a", "", ""},
		{"a block of thinking that was taken out", []string{started, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}`, opened, said, because("end_turn"), stopped}, "a", "", ""},
		{"a reason without the stop", []string{started, opened, said, because("end_turn")}, "", onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"the stop without a reason", []string{started, opened, said, stopped}, "", onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"a paused turn", []string{started, opened, said, because("pause_turn"), stopped}, "", onereply.ClassUseless, onereply.CodeBadProviderResponse},
		{"a refusal after some text", []string{started, opened, said, because("refusal"), stopped}, "", onereply.ClassRefusedPermanent, onereply.CodeContentFiltered},
		{"a tool of the provider's", []string{started, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"t","name":"web_search","input":{}}}`}, "", onereply.ClassRefusedPermanent, onereply.CodeToolCalls},
		{"an overload at the start", []string{started, fault("overloaded_error")}, "", onereply.ClassUnknown, onereply.CodeProviderOverloaded},
		{"an overload after two deltas", []string{started, opened, said, said, fault("overloaded_error")}, "", onereply.ClassUnknown, onereply.CodeProviderOverloaded},
		{"a rate limit at the start", []string{started, fault("rate_limit_error")}, "", onereply.ClassRefusedTemporary, onereply.CodeRateLimited},
		{"a rate limit after thinking", []string{started, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, fault("rate_limit_error")}, "", onereply.ClassUnknown, onereply.CodeRateLimited},
		{"a bill in the stream", []string{started, opened, said, fault("billing_error")}, "", onereply.ClassRefusedPermanent, onereply.CodeInsufficientQuota},
		{"nothing at all", nil, "", onereply.ClassUnknown, onereply.CodeProviderUnavailable},
		{"only pings", []string{ping, ping}, "", onereply.ClassUnknown, onereply.CodeProviderUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, e, call := answer(t, test.events...)
			switch {
			case test.class == "" && (e != nil || got.Text != test.text || got.Model != "m" || got.Usage != onereply.Usage{InputTokens: 25, OutputTokens: 7} || call.Usage() != got.Usage):
				t.Errorf("got %+v, %v", got, e)
			case test.class != "" && (e == nil || e.Class != test.class || e.Code != test.code || got != provider.Answer{}):
				t.Errorf("got %+v, %v, want %s (%s)", got, e, test.class, test.code)
			}
		})
	}
}

func TestSpendLimitsEndATask(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"enforced_spend_limit_reached", "contract_spend_limit_reached"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":%q}}}`, code)
		}))
		model, err := anthropic.New("m", anthropic.Options{BaseURL: server.URL, Transport: transport(t)})
		if err != nil {
			t.Fatal(err)
		}
		call := &providertest.Call{}
		_, err = model.Start(t.Context(), call, provider.Request{Messages: []provider.Message{{Role: provider.User, Text: "?"}}}, func(string) error { return nil })
		if e := onereply.Classify(err, call.Seen(), nil, time.Now()); e == nil || e.Class != onereply.ClassRefusedPermanent || e.Code != onereply.CodeInsufficientQuota {
			t.Errorf("%s: %v", code, e)
		}
		server.Close()
	}
}

func TestWhatIsSent(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/elsewhere")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	for _, key := range []string{"", "sk-1"} {
		var header http.Header
		var path string
		var body map[string]any
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header, path = r.Header, r.URL.Path
			raw, _ := io.ReadAll(r.Body)
			if err := json.Unmarshal(raw, &body); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusBadRequest)
		}))
		model, err := anthropic.New("claude-x", anthropic.Options{BaseURL: server.URL, APIKey: key, Transport: transport(t), MaxTokens: 99})
		if err != nil {
			t.Fatal(err)
		}
		request := provider.Request{Messages: []provider.Message{
			{Role: provider.System, Text: "s"}, {Role: provider.User, Text: "u"}, {Role: provider.Assistant, Text: "a"}, {Role: provider.User, Text: "<&>"},
		}}
		if _, err := model.Start(t.Context(), &providertest.Call{}, request, func(string) error { return nil }); err == nil {
			t.Error("400 gave an answer")
		}
		server.Close()
		bearer := map[string]string{"": "", "sk-1": "Bearer sk-1"}[key]
		if path != "/v1/messages" || header.Get("Authorization") != bearer || header.Get("Traceparent") != "" {
			t.Errorf("path %s, authorization %q, want %q", path, header.Get("Authorization"), bearer)
		}
		for name, values := range header {
			if strings.Contains(fmt.Sprint(values), "from-the-environment") || strings.Contains(strings.ToLower(name), "idempotency") {
				t.Errorf("sent %s: %v", name, values)
			}
		}
		turn := func(role, text string) any {
			return map[string]any{"role": role, "content": []any{map[string]any{"type": "text", "text": text}}}
		}
		want := map[string]any{
			"model": "claude-x", "max_tokens": 99.0, "stream": true,
			"system":   []any{map[string]any{"type": "text", "text": "s"}},
			"messages": []any{turn("user", "u"), turn("assistant", "a"), turn("user", "<&>")},
		}
		if diff := cmp.Diff(want, body); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}
