package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/onereply/onereply/web"
)

func get(t *testing.T, method, target string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, path string
		status       int
		contentType  string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", 200, "text/html; charset=utf-8"},
		{"GET", "/c/01890000-0000-7000-8000-000000000001", 200, "text/html; charset=utf-8"},
		{"GET", "/tasks/01890000-0000-7000-8000-000000000001", 200, "text/html; charset=utf-8"},
		{"GET", "/assets/js/app.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/css/base.css", 200, "text/css; charset=utf-8"},
		{"GET", "/assets/icon.svg", 200, "image/svg+xml"},
		{"GET", "/client/index.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/c/", 404, "text/plain; charset=utf-8"},
		{"GET", "/c/a/b", 404, "text/plain; charset=utf-8"},
		{"GET", "/documents", 404, "text/plain; charset=utf-8"},
		{"GET", "/assets/../embed.go", 404, "text/plain; charset=utf-8"},
		{"GET", "/client/test/outbox.test.js", 404, "text/plain; charset=utf-8"},
		{"POST", "/", 405, "text/plain; charset=utf-8"},
		{"DELETE", "/assets/js/app.js", 405, "text/plain; charset=utf-8"},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			t.Parallel()
			r := get(t, test.method, test.path, nil)
			if r.StatusCode != test.status || r.Header.Get("Content-Type") != test.contentType {
				t.Errorf("got %d %s, want %d %s", r.StatusCode, r.Header.Get("Content-Type"), test.status, test.contentType)
			}
			if csp := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'self';") || strings.Contains(csp, "unsafe") {
				t.Errorf("Content-Security-Policy: %s", csp)
			}
		})
	}
}

func TestBrowserKeepsAFileAndAsksWhetherItIsStillSo(t *testing.T) {
	t.Parallel()
	first := get(t, "GET", "/assets/js/app.js", nil)
	etag := first.Header.Get("ETag")
	if etag == "" || first.Header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("ETag %q, Cache-Control %q", etag, first.Header.Get("Cache-Control"))
	}
	again := get(t, "GET", "/assets/js/app.js", http.Header{"If-None-Match": {etag}})
	if again.StatusCode != http.StatusNotModified || body(t, again) != "" {
		t.Errorf("the same file again: %d", again.StatusCode)
	}
	changed := get(t, "GET", "/assets/js/app.js", http.Header{"If-None-Match": {`"another"`}})
	if changed.StatusCode != http.StatusOK {
		t.Errorf("another version: %d", changed.StatusCode)
	}
}

var (
	reference = regexp.MustCompile(`(?:src|href|from|import)\s*[=(]?\s*["'(]([^"'#)]+)(?:#[^"']*)?["')]`)
	inline    = regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:`)
	elsewhere = regexp.MustCompile(`(?i)["'(](?:https?:)?//[a-z0-9]`)
)

// The policy would block what is inline or from elsewhere; better to see it
// here than in somebody's console. Follows every reference from the page.
func TestPageIsWholeAndAllItsOwn(t *testing.T) {
	t.Parallel()
	page := body(t, get(t, "GET", "/", nil))
	if found := inline.FindString(page); found != "" {
		t.Errorf("inline code in the page: %q", found)
	}
	seen := map[string]bool{"/": true}
	queue := references("/", page)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] || name == "/" {
			continue
		}
		seen[name] = true
		r := get(t, "GET", name, nil)
		content := body(t, r)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s is referred to and not there", name)
			continue
		}
		if found := elsewhere.FindString(content); found != "" && path.Ext(name) != ".svg" && !strings.Contains(content, "http://www.w3.org/2000/svg") {
			t.Errorf("%s refers to another host: %q", name, found)
		}
		if lines := strings.Count(content, "\n"); path.Ext(name) == ".js" && lines > 400 {
			t.Errorf("%s has %d lines; a file is one subject and at most 400", name, lines)
		}
		if path.Ext(name) == ".js" {
			queue = append(queue, references(name, content)...)
		}
	}
	if !seen["/client/outbox.js"] || !seen["/assets/js/turn.js"] {
		t.Errorf("references were not followed: %v", seen)
	}
}

// references lists the paths a page or a module refers to.
func references(from, content string) []string {
	var found []string
	for _, match := range reference.FindAllStringSubmatch(content, -1) {
		name := match[1]
		switch {
		case strings.HasPrefix(name, "./"), strings.HasPrefix(name, "../"):
			if !strings.HasSuffix(name, ".js") {
				continue
			}
			found = append(found, path.Join(path.Dir(from), name))
		case strings.HasPrefix(name, "/assets/"), strings.HasPrefix(name, "/client/"):
			if !strings.Contains(name, "$") {
				found = append(found, name)
			}
		}
	}
	return found
}
