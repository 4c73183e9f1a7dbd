package provider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/providertest"
)

func TestAnErrorBodyThatStallsHoldsNoWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			out, in := io.Pipe()
			go func() {
				_, _ = io.WriteString(in, `{"error":`)
				<-r.Context().Done()
				_ = in.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"9"}}, Body: out}, nil
		})
		call := &providertest.Call{}
		response, body, err := post(t.Context(), provider.ClientWith(call, base), "http://provider.test")
		if err == nil || body != "" && !strings.HasPrefix(body, `{"error":`) {
			t.Errorf("got body %q, %v", body, err)
		}
		if e := classify(call, response, err, nil); e.Class != onereply.ClassRefusedTemporary || e.RetryAfter == 0 {
			t.Errorf("got %v", e)
		}
	})
}

func TestParseError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 400)
	tests := map[string]struct {
		raw  string
		want provider.Error
		ok   bool
	}{
		"OpenAI":                    {`{"error":{"message":"M","type":"T","param":null,"code":"C"}}`, provider.Error{Code: "C", Type: "T", Message: "M"}, true},
		"no code":                   {`{"error":{"message":"M","type":"T","code":null}}`, provider.Error{Type: "T", Message: "M"}, true},
		"a number as the code":      {`{"error":{"message":"M","code":429}}`, provider.Error{Code: "429", Message: "M"}, true},
		"a bare string":             {`{"error":"model 'x' not found"}`, provider.Error{Message: "model 'x' not found"}, true},
		"Anthropic":                 {`{"type":"error","error":{"type":"T","message":"M"},"request_id":"r"}`, provider.Error{Type: "T", Message: "M"}, true},
		"Anthropic with details":    {`{"type":"error","error":{"type":"T","message":"M","details":{"error_code":"C"}}}`, provider.Error{Code: "C", Type: "T", Message: "M"}, true},
		"details of another kind":   {`{"error":{"type":"T","details":["x",1]}}`, provider.Error{Type: "T"}, true},
		"a flat event":              {`{"type":"error","code":"C","message":"M","param":null}`, provider.Error{Code: "C", Message: "M"}, true},
		"vLLM":                      {`{"object":"error","message":"M","type":"BadRequestError","code":400}`, provider.Error{Code: "400", Type: "BadRequestError", Message: "M"}, true},
		"FastAPI":                   {`{"detail":"Not Found"}`, provider.Error{Message: "Not Found"}, true},
		"Google, in a list":         {`[{"error":{"code":400,"message":"M","status":"INVALID_ARGUMENT"}}]`, provider.Error{Code: "400", Type: "INVALID_ARGUMENT", Message: "M"}, true},
		"a message of many lines":   {"{\"error\":{\"message\":\"a\\n\\t b\\u0000\"}}", provider.Error{Message: "a b"}, true},
		"a long message":            {`{"error":{"message":"` + long + `"}}`, provider.Error{Message: onereply.Short(long)}, true},
		"an answer":                 {`{"id":"x","object":"chat.completion","choices":[]}`, provider.Error{}, false},
		"an answer with error null": {`{"choices":[],"error":null}`, provider.Error{}, false},
		"an empty object":           {`{}`, provider.Error{}, false},
		"an empty list":             {`[]`, provider.Error{}, false},
		"nothing":                   {``, provider.Error{}, false},
		"a page":                    {`<html>`, provider.Error{}, false},
		"half an object":            {`{"error":{"code":"C"`, provider.Error{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := provider.ParseError([]byte(test.raw))
			if ok != test.ok {
				t.Fatalf("ok = %v", ok)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParseError(f *testing.F) {
	for _, seed := range []string{`{"error":{"code":1e400}}`, `{"error":{"details":{"error_code":{}}}}`, `[[{"error":"x"}]]`, `{"type":"error"}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, ok := provider.ParseError(raw)
		if !ok && e != (provider.Error{}) {
			t.Errorf("no error, and yet %+v", e)
		}
		if len(e.Message) > 300 {
			t.Errorf("message of %d bytes", len(e.Message))
		}
	})
}
