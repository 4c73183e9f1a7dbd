package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultLimit = 50
	maxLimit     = 200
)

// readQuery returns the URL's parameters. One that the route does not know, or
// that is there twice, is refused: a misspelled filter must not mean "all".
func readQuery(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, newProblem(codeInvalidRequest, "The query string cannot be read.")
	}
	for name, given := range values {
		if !slices.Contains(known, name) {
			return nil, badParameter(name, "is not a parameter of this route")
		}
		if len(given) > 1 {
			return nil, badParameter(name, "is there more than once")
		}
	}
	return values, nil
}

func badParameter(name, why string) error {
	if len(name) > 40 {
		name = strings.ToValidUTF8(name[:40], "") + "…"
	}
	return newProblem(codeInvalidRequest, fmt.Sprintf("The query parameter %q %s.", name, why)).with("parameter", name)
}

// page is one step through a list: at most limit entries after the one named.
type page struct {
	limit int
	after string
}

func readPage(q url.Values) (page, error) {
	p := page{limit: defaultLimit}
	if q.Has("limit") {
		n, err := strconv.Atoi(q.Get("limit"))
		if err != nil || n < 1 || n > maxLimit {
			return page{}, badParameter("limit", fmt.Sprintf("must be a whole number from 1 to %d", maxLimit))
		}
		p.limit = n
	}
	if q.Has("after") {
		p.after = q.Get("after")
		if !isID(p.after) {
			return page{}, badParameter("after", "must be an id, as a list's next gives it")
		}
	}
	return p, nil
}

// list is the answer to a list request.
type list[T any] struct {
	Data []T    `json:"data"`
	Next string `json:"next,omitempty"` // what to pass as after; absent at the end
}

// paged makes a page of found, which was asked for with one entry more than the
// limit, so that it shows whether there is a next page.
func paged[F, T any](found []F, limit int, id func(F) string, show func(F) T) list[T] {
	l := list[T]{Data: make([]T, 0, min(len(found), limit))}
	for i, f := range found {
		if i == limit {
			l.Next = id(found[limit-1])
			break
		}
		l.Data = append(l.Data, show(f))
	}
	return l
}

// wantsHTML reads ?render=html.
func (h *handler) wantsHTML(q url.Values) (func(string) string, error) {
	if !q.Has("render") {
		return nil, nil
	}
	if q.Get("render") != "html" || h.Render == nil {
		return nil, badParameter("render", "must be html, where the server renders")
	}
	return h.Render, nil
}

// isID reports whether s has the form of an id: a UUID in lower case.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// pathID returns the id in the path. What has not the form of one names
// nothing, so it is not found, as an unknown one is.
func pathID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !isID(id) {
		return "", newProblem(codeNotFound, "There is nothing here by that name.")
	}
	return id, nil
}
