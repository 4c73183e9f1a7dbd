package provider

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/onereply/onereply"
)

// Lookup returns an http.Client for what is no call: looking an operation up and
// asking the provider to stop it. GET, HEAD and OPTIONS pass, and so does a
// POST, without a body of consequence, to a path that ends in stop, such as
// "/cancel". The body that some SDKs give a GET is left out. Every other request never leaves this process; its error matches
// [onereply.ErrUncounted]. Redirects are handed back, not followed.
//
// Nothing is reported to a call: what a lookup meets says nothing of it. It may
// be repeated as often as one likes.
func Lookup(base http.RoundTripper, stop string) *http.Client {
	return &http.Client{
		Transport: &lookup{base: base, stop: stop},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

type lookup struct {
	base http.RoundTripper
	stop string
}

// RoundTrip sends what can start no work.
func (l *lookup) RoundTrip(r *http.Request) (*http.Response, error) {
	if startsWork(r.Method) && (r.Method != http.MethodPost || l.stop == "" || !strings.HasSuffix(r.URL.Path, l.stop)) {
		if r.Body != nil {
			_ = r.Body.Close() // the contract of a RoundTripper; nothing was read from it
		}
		return nil, fmt.Errorf("%s to %s in a lookup: %w", r.Method, r.URL.Host, onereply.ErrUncounted)
	}
	if r.Body != nil && !startsWork(r.Method) {
		_ = r.Body.Close() // as above
		r = r.Clone(r.Context())
		r.Body, r.GetBody, r.ContentLength = nil, nil, 0
	}
	return l.base.RoundTrip(r)
}
