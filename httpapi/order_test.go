package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/onereply/onereply"
)

// Each request is wrong in several ways; the answer names the first in the
// contract's order, and nothing behind it was asked to change anything.
func TestChecksHappenInTheContractsOrder(t *testing.T) {
	t.Parallel()
	const send = "POST /v1/conversations/" + someID + "/messages"
	const unknown = "POST /v1/conversations/nonsense/messages"
	huge := `{"text":"` + strings.Repeat("x", 30000) + `"`
	jsonType := []string{"application/json"}
	foreign := []string{"https://evil.example"}
	for _, c := range []struct {
		name    string
		request string
		header  http.Header
		body    string
		auth    error
		service error
		status  int
		code    string
	}{
		{"401 before a foreign origin, a missing route and the rest", "POST /v1/nowhere", http.Header{"Origin": foreign}, huge, ErrUnauthorized, nil, 401, codeUnauthorized},
		{"403 of the credential before a missing route", "POST /v1/nowhere", nil, huge, ErrForbidden, nil, 403, codeForbidden},
		{"403 of a foreign origin before a missing route", "POST /v1/nowhere", http.Header{"Origin": foreign}, huge, nil, nil, 403, codeForbidden},
		{"404 of the route before the body", "POST /v1/nowhere", nil, huge, nil, nil, 404, codeNotFound},
		{"405 of the route before the body", "PUT /v1/tasks", nil, huge, nil, nil, 405, codeMethodNotAllowed},
		{"415 before 413", send, http.Header{"Content-Type": {"text/plain"}}, huge, nil, nil, 415, codeUnsupportedMedia},
		{"413 of the body before the key", send, http.Header{"Content-Type": jsonType, KeyHeader: {""}}, huge, nil, nil, 413, codeTooLarge},
		{"413 of the text before the key", send, http.Header{"Content-Type": jsonType}, `{"text":"` + strings.Repeat("x", 1001) + `"}`, nil, nil, 413, codeTooLarge},
		{"400 of the key before the body", send, http.Header{"Content-Type": jsonType}, "{", nil, nil, 400, codeKeyMissing},
		{"400 of a bad key before the body", send, http.Header{"Content-Type": jsonType, KeyHeader: {"a,b"}}, "{", nil, nil, 400, codeKeyInvalid},
		{"400 of the body before the path's resource", unknown, http.Header{"Content-Type": jsonType, KeyHeader: {"k"}}, "{", nil, nil, 400, codeInvalidJSON},
		{"400 of the values before the path's resource", unknown, http.Header{"Content-Type": jsonType, KeyHeader: {"k"}}, "{}", nil, nil, 400, codeInvalidRequest},
		{"404 of the path's resource", unknown, http.Header{"Content-Type": jsonType, KeyHeader: {"k"}}, `{"text":"x"}`, nil, nil, 404, codeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &fakeService{err: c.service}
			api := fakeAPI(t, f, func(cfg *Config) {
				cfg.Authorize = func(*http.Request) (string, error) { return "w", c.auth }
			})
			w := do(api, c.request, c.header, c.body)
			if code := problemOf(t, w); w.Code != c.status || code != c.code {
				t.Errorf("%d %s, want %d %s: %s", w.Code, code, c.status, c.code, w.Body)
			}
			if f.changes != 0 {
				t.Errorf("%d changes were asked for", f.changes)
			}
		})
	}
}

// Whoever hangs up has still asked: a change is bounded, and not by its client.
func TestAChangeIsDetachedFromItsClient(t *testing.T) {
	t.Parallel()
	for request, body := range map[string]string{
		"POST /v1/conversations":                         "{}",
		"POST /v1/conversations/" + someID + "/messages": `{"text":"x"}`,
		"POST /v1/messages/" + someID + "/regenerate":    "{}",
		"POST /v1/tasks/" + someID + "/cancel":           "{}",
		"POST /v1/tasks/" + someID + "/resume":           "{}",
		"DELETE /v1/conversations/" + someID:             "",
	} {
		f := &fakeService{}
		gone, leave := context.WithCancel(t.Context())
		leave()
		method, target, _ := strings.Cut(request, " ")
		r := httptest.NewRequestWithContext(gone, method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(KeyHeader, "k")
		fakeAPI(t, f, nil).ServeHTTP(httptest.NewRecorder(), r)
		if f.changes != 1 || len(f.cut) > 0 {
			t.Errorf("%s: %d changes, %v", request, f.changes, f.cut)
		}
	}
}

func TestEveryErrorOfTheServiceHasItsProblem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{onereply.ErrKeyReused, 422, codeKeyReused},
		{&onereply.Error{Op: "read secret", Err: onereply.ErrNotFound}, 404, codeNotFound},
		{onereply.ErrEnded, 409, codeTaskEnded},
		{onereply.ErrNotFailed, 409, codeTaskNotFailed},
		{onereply.ErrDeadlineExceeded, 409, codeDeadlineExceeded},
		{onereply.ErrInvalid, 400, codeInvalidRequest},
		{onereply.ErrUnavailable, 503, codeUnavailable},
		{onereply.ErrCommitUnknown, 503, codeUnavailable},
		{onereply.ErrClosed, 503, codeUnavailable},
		{http.ErrBodyNotAllowed, 500, codeInternal},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			t.Parallel()
			api := fakeAPI(t, &fakeService{err: c.err}, nil)
			w := do(api, "POST /v1/tasks/"+someID+"/cancel", nil, "")
			if code := problemOf(t, w); w.Code != c.status || code != c.code {
				t.Errorf("%d %s, want %d %s", w.Code, code, c.status, c.code)
			}
			if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "net/http") {
				t.Errorf("the error's own text reached the wire: %s", w.Body)
			}
			if after := w.Header().Get("Retry-After"); (w.Code == 503) != (after != "") {
				t.Errorf("Retry-After %q on a %d", after, w.Code)
			}
		})
	}
}

func TestEveryProblemCodeIsInTheTableWithAPageOfItsOwn(t *testing.T) {
	t.Parallel()
	api := fakeAPI(t, &fakeService{}, nil)
	for _, code := range []string{
		codeUnauthorized, codeForbidden, codeNotFound, codeMethodNotAllowed, codeTaskEnded, codeTaskNotFailed, codeDeadlineExceeded,
		codeTooLarge, codeUnsupportedMedia, codeKeyMissing, codeKeyInvalid, codeInvalidJSON, codeInvalidRequest, codeKeyReused,
		codeRateLimited, codeInternal, codeUnavailable,
	} {
		w := do(api, "GET "+problemTypePrefix+code, nil, "")
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), code) {
			t.Errorf("%s: %d %s", code, w.Code, w.Body)
		}
		if !strings.Contains(openAPI, code) {
			t.Errorf("openapi.json does not know %s", code)
		}
	}
	if w := do(api, "GET /problems/nonsense", nil, ""); w.Code != 404 || problemOf(t, w) != codeNotFound {
		t.Errorf("an unknown type: %d", w.Code)
	}
}

func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal([]byte(openAPI), &doc); err != nil {
		t.Fatal(err)
	}
	for pattern := range new(handler).routes() {
		method, path, _ := strings.Cut(pattern, " ")
		if doc.Paths[path][strings.ToLower(method)] == nil {
			t.Errorf("%s is not in openapi.json", pattern)
		}
	}
}

func TestAPanicIsAnsweredAndTheNextRequestServed(t *testing.T) {
	t.Parallel()
	api := fakeAPI(t, &fakeService{}, func(c *Config) {
		c.Authorize = func(r *http.Request) (string, error) {
			if r.Header.Get("X-Boom") != "" {
				panic("secret")
			}
			return "w", nil
		}
	})
	w := do(api, "GET /v1/tasks", http.Header{"X-Boom": {"1"}}, "")
	if code := problemOf(t, w); code != codeInternal || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(api, "GET /v1/tasks", nil, ""); w.Code != 200 {
		t.Errorf("afterwards: %d", w.Code)
	}
}

func TestRequestsFromOtherSitesAndNamesAreForbidden(t *testing.T) {
	t.Parallel()
	const create = "POST http://localhost:8080/v1/conversations"
	body := http.Header{"Content-Type": {"application/json"}}
	with := func(name, value string) http.Header {
		h := body.Clone()
		h.Set(name, value)
		return h
	}
	for _, c := range []struct {
		name    string
		request string
		header  http.Header
		status  int
	}{
		{"no browser", create, body, 201},
		{"the page itself", create, with("Sec-Fetch-Site", "same-origin"), 201},
		{"the page itself in an older browser", create, with("Origin", "http://localhost:8080"), 201},
		{"another site", create, with("Sec-Fetch-Site", "cross-site"), 403},
		{"another port of this machine", create, with("Origin", "http://localhost:9999"), 403},
		{"a link from another site only reads", "GET http://localhost:8080/v1/tasks", with("Sec-Fetch-Site", "cross-site"), 200},
		{"the loopback address by number", "GET http://127.0.0.1:8080/v1/tasks", nil, 200},
		{"the loopback address of IPv6", "GET http://[::1]:8080/v1/tasks", nil, 200},
		{"a foreign name that was pointed here", "GET http://evil.example:8080/v1/tasks", nil, 403},
		{"a foreign name without a port", "GET http://evil.example/v1/tasks", nil, 403},
		{"a probe may use any name", "GET http://evil.example/healthz", nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			api := fakeAPI(t, &fakeService{}, func(cfg *Config) { cfg.Host = LoopbackHost })
			w := do(api, c.request, c.header, "{}")
			if w.Code != c.status {
				t.Errorf("%d, want %d: %s", w.Code, c.status, w.Body)
			}
			if w.Code == 403 && problemOf(t, w) != codeForbidden {
				t.Errorf("%s", w.Body)
			}
		})
	}
}

func TestRoutesThatAreNotThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		request string
		status  int
		allow   string
	}{
		{"GET /", 404, ""},
		{"GET /v1", 404, ""},
		{"GET /v1/", 404, ""},
		{"GET /v1/tasks/", 404, ""},
		{"GET /v1//tasks", 404, ""},
		{"GET /v1/../v1/tasks", 404, ""},
		{"POST /v1//conversations", 404, ""},
		{"PATCH /v1/tasks/" + someID, 405, "GET, HEAD"},
		{"GET /v1/tasks/" + someID + "/cancel", 405, "POST"},
		{"PUT /v1/conversations", 405, "GET, HEAD, POST"},
		{"OPTIONS /v1/tasks", 405, "GET, HEAD"},
		{"POST /healthz", 405, "GET, HEAD"},
		{"GET /v1/tasks/0189ABCD-0000-7000-8000-000000000000", 404, ""},
		{"GET /v1/tasks/" + url.PathEscape("a/b"), 404, ""},
		{"GET /v1/tasks/%00", 404, ""},
	} {
		t.Run(c.request, func(t *testing.T) {
			t.Parallel()
			w := do(fakeAPI(t, &fakeService{}, nil), c.request, nil, "")
			if w.Code != c.status {
				t.Errorf("%d, want %d", w.Code, c.status)
			}
			problemOf(t, w)
			if allow := w.Header().Get("Allow"); allow != c.allow {
				t.Errorf("Allow %q, want %q", allow, c.allow)
			}
		})
	}
}

func TestParametersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		"/v1/tasks?limit=0", "/v1/tasks?limit=201", "/v1/tasks?limit=-1", "/v1/tasks?limit=ten", "/v1/tasks?limit=", "/v1/tasks?limit=1.5",
		"/v1/tasks?limit=99999999999999999999", "/v1/tasks?limit=1&limit=2", "/v1/tasks?after=x", "/v1/tasks?after=", "/v1/tasks?status=done",
		"/v1/tasks?status=", "/v1/tasks?kind=", "/v1/tasks?kind=a%00b", "/v1/tasks?satus=failed", "/v1/tasks?a=%zz", "/v1/tasks?a;b",
		"/v1/conversations?limit=0", "/v1/conversations?after=1", "/v1/conversations/" + someID + "?render=pdf",
		"/v1/tasks/" + someID + "?wait=20", "/v1/tasks/" + someID + "?wait=-1s", "/v1/tasks/" + someID + "?wait=61s", "/v1/tasks/" + someID + "?wait=",
		"/v1/tasks/" + someID + "?wait=1s&wait=2s", "/v1/tasks/" + someID + "?wait=1e9h", "/v1/tasks/" + someID + "/timeline?x=1", "/v1/tasks/" + someID + "/events?x=1",
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := do(fakeAPI(t, &fakeService{}, nil), "GET "+target, nil, "")
			if code := problemOf(t, w); w.Code != 400 || code != codeInvalidRequest {
				t.Errorf("%d %s, want 400 invalid_request", w.Code, code)
			}
		})
	}
}

func TestEveryAnswerCarriesARequestIDOfItsOwnAndSafeHeaders(t *testing.T) {
	t.Parallel()
	api := fakeAPI(t, &fakeService{}, nil)
	seen := make(map[string]bool)
	for _, request := range []string{"GET /v1/tasks", "GET /v1/nowhere", "GET /healthz", "POST /v1/tasks", "GET /v1/openapi.json"} {
		w := do(api, request, nil, "")
		id := w.Header().Get("X-Request-Id")
		if id == "" || seen[id] {
			t.Errorf("%s: request id %q", request, id)
		}
		seen[id] = true
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", request, w.Header())
		}
		if w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", request)
		}
	}
}
