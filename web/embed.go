// Package web serves the page that people use: conversations, and the timeline
// of each task. The page is plain HTML, CSS and ES modules in page/, embedded
// as they are; what it asks of the service it asks through client/, which is
// also an npm package of its own. Start reading at client/outbox.js (why
// nothing is sent twice), then page/js/app.js.
//
// The package knows nothing of the API: it hands out files.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page client/*.js
var files embed.FS

// policy allows what the page is made of and nothing else: no script, style or
// request that is not this server's, nothing inline, no frame around it. Only
// the one Trusted Types policy of page/js/dom.js may turn a string into HTML.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types onereply-rendered"

// contentType is set by hand: the table of the machine may have others.
func contentType(name string) (string, error) {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8", nil
	case ".css":
		return "text/css; charset=utf-8", nil
	case ".js":
		return "text/javascript; charset=utf-8", nil
	case ".svg":
		return "image/svg+xml", nil
	}
	return "", fmt.Errorf("no content type for %s", name)
}

// page is the handler; it is read only once made.
type page struct {
	files map[string]file // by URL path
	index file
}

type file struct {
	content     []byte
	contentType string
	etag        string
}

// Handler returns the page as a handler for the root of a server: the page
// itself at /, /c/{id} and /tasks/{id}, its parts under /assets/ and /client/,
// and 404 for everything else. Answers to GET and HEAD carry an ETag, and a
// browser asks for it again each time, so that a new version of the program
// never meets old scripts. It panics when the embedded files are not what they
// should be, which is a mistake in the build.
func Handler() http.Handler {
	p := page{files: make(map[string]file)}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return p.add(name)
	})
	if err != nil {
		panic(fmt.Sprintf("web: reading the embedded page: %v", err))
	}
	return p
}

// add takes in an embedded file under the path it is served at.
func (p *page) add(name string) error {
	kind, err := contentType(name)
	if err != nil {
		return err
	}
	content, err := files.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	sum := sha256.Sum256(content)
	f := file{content: content, contentType: kind, etag: `"` + hex.EncodeToString(sum[:12]) + `"`}
	switch rest, inPage := strings.CutPrefix(name, "page/"); {
	case name == "page/index.html":
		p.index = f
	case inPage:
		p.files["/assets/"+rest] = f
	default:
		p.files["/"+name] = f
	}
	return nil
}

// ServeHTTP answers with a file, or the page for the paths it knows how to show.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	f, ok := p.files[r.URL.Path]
	if !ok && isView(r.URL.Path) {
		f, ok = p.index, true
	}
	switch {
	case !ok:
		http.Error(w, "There is nothing here.", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The page can only be read.", http.StatusMethodNotAllowed)
	default:
		w.Header().Set("Content-Type", f.contentType)
		w.Header().Set("Cache-Control", "no-cache") // keep it, and ask whether it is still so
		w.Header().Set("ETag", f.etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
	}
}

// isView reports whether the page's script has a view for the path.
func isView(p string) bool {
	if p == "/" {
		return true
	}
	for _, view := range []string{"/c/", "/tasks/"} {
		if id, ok := strings.CutPrefix(p, view); ok {
			return id != "" && !strings.Contains(id, "/")
		}
	}
	return false
}

// secure sets what every answer of the page carries.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
}
