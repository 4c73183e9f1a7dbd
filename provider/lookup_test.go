package provider_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

func TestALookupStartsNoWork(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	arrived := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		arrived[r.Method+" "+r.URL.Path]++
		mu.Unlock()
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "/v1/responses", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	client := provider.Lookup(transport(t), "/cancel")
	for _, test := range []struct {
		method, path string
		leaves       bool
	}{
		{http.MethodGet, "/v1/responses/resp_1", true},
		{http.MethodHead, "/v1/responses/resp_1", true},
		{http.MethodPost, "/v1/responses/resp_1/cancel", true},
		{http.MethodPost, "/elsewhere", false},
		{http.MethodPost, "/v1/responses", false},
		{http.MethodPost, "/v1/responses/cancel/x", false},
		{http.MethodPut, "/v1/responses/resp_1/cancel", false},
		{http.MethodDelete, "/v1/responses/resp_1", false},
		{http.MethodGet, "/elsewhere", true},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if left := err == nil; left != test.leaves || !left && !errors.Is(err, onereply.ErrUncounted) {
			t.Errorf("%s %s: %v, want it to leave: %v", test.method, test.path, err, test.leaves)
		}
		mu.Lock()
		n := arrived[test.method+" "+test.path]
		mu.Unlock()
		if (n > 0) != test.leaves {
			t.Errorf("%s %s arrived %d times", test.method, test.path, n)
		}
	}
	if n := arrived["GET /v1/responses"]; n != 0 {
		t.Error("a redirect was followed")
	}
}
