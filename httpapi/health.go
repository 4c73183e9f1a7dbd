package httpapi

import (
	"context"
	_ "embed"
	"io"
	"net/http"

	"github.com/onereply/onereply/store"
)

//go:embed openapi.json
var openAPI string

// probe answers a health question. A probe is no route of the API: it asks for
// no credential and tells nothing but yes or no.
func (h *handler) probe(w http.ResponseWriter, r *http.Request, healthy func(context.Context) error) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.answerError(w, r, newProblem(codeMethodNotAllowed, "Probes are asked with GET.").withHeader("Allow", "GET, HEAD"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	if err := healthy(ctx); err != nil {
		p := asProblem(err)
		if p.code != codeUnavailable {
			p = newProblem(codeUnavailable, "The service cannot do its work now.").withHeader("Retry-After", "1")
			p.cause = err
		}
		h.answerError(w, r, p)
		return
	}
	if err := writeJSON(w, http.StatusOK, "application/json", map[string]string{"status": "ok"}); err != nil {
		h.answerError(w, r, err)
	}
}

// storeAnswers is the readiness of a service whose work needs its store: one
// small read.
func (c Config) storeAnswers(ctx context.Context) error {
	_, err := c.Engine.Tasks(ctx, store.Query{Limit: 1})
	return err
}

// serveOpenAPI answers the contract in its exact form.
func (h *handler) serveOpenAPI(w http.ResponseWriter, _ *http.Request, _ string) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(w, openAPI)
	return wireError(err)
}
