package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/onereply/onereply"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"

	maxAnswer      = 64 << 20 // bytes of one answer; a conversation can be long
	requestTimeout = 90 * time.Second
)

// Options configure a client. Zero members take the defaults named.
type Options struct {
	APIKey string       // sent as a bearer token; default none
	HTTP   *http.Client // default: one of its own, without an overall timeout
	// Patience is how long a request or a stream keeps trying without any
	// progress. Default 2 minutes; negative: a single try.
	Patience time.Duration
	Backoff  onereply.Backoff    // between tries; default 100 milliseconds base, 5 seconds cap
	Draw     func(n int64) int64 // even in [0,n), for jitter; default math/rand/v2
	// Retrying, when set, is told before each wait why and for how long.
	Retrying func(cause error, wait time.Duration)
}

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	base string
	o    Options
	ids  *onereply.IDs
}

// New returns a client of the server at a base URL such as
// "http://127.0.0.1:8080". It makes no request.
func New(base string, o Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("server URL %q must begin with http:// or https:// and name a host", base)
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	if o.Patience == 0 {
		o.Patience = 2 * time.Minute
	}
	if o.Backoff == (onereply.Backoff{}) {
		o.Backoff = onereply.Backoff{Base: 100 * time.Millisecond, Max: 5 * time.Second}
	}
	if o.Draw == nil {
		o.Draw = rand.Int64N
	}
	if o.Retrying == nil {
		o.Retrying = func(error, time.Duration) {}
	}
	return &Client{base: strings.TrimSuffix(base, "/"), o: o, ids: onereply.NewIDs()}, nil
}

// NewKey returns a fresh idempotency key. Mint one per press, and keep it with
// what it stands for until the answer has come.
func (c *Client) NewKey() string { return c.ids.New() }

// request is one logical request, however often it is tried.
type request struct {
	method, path string
	query        url.Values
	key          string
	body         any // nil: none
}

// reply is the answer to a request.
type reply struct {
	status int
	header http.Header
}

func (r reply) replayed() bool { return r.header.Get(replayedHeader) == "true" }

// do tries a request until it is answered and decodes the answer into out,
// which may be nil. A refusal is a [*Problem].
func (c *Client) do(ctx context.Context, q request, out any) (reply, error) {
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return reply{}, fmt.Errorf("encoding %s %s: %w", q.method, q.path, err)
		}
	}
	p := c.patience()
	for {
		r, err := c.try(ctx, q, body, out)
		if err == nil || !passing(err) {
			return r, err
		}
		if err := p.wait(ctx, err); err != nil {
			return reply{}, err
		}
	}
}

// try sends a request once.
func (c *Client) try(ctx context.Context, q request, body []byte, out any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := c.send(ctx, q, body)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return reply{}, readProblem(resp)
	}
	r := reply{status: resp.StatusCode, header: resp.Header}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return reply{}, &broken{fmt.Errorf("%s %s: reading the answer: %w", q.method, q.path, err)}
	case len(text) > maxAnswer:
		return reply{}, fmt.Errorf("%s %s: the answer is larger than %d bytes", q.method, q.path, maxAnswer)
	case out == nil:
		return r, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return reply{}, fmt.Errorf("%s %s: the answer is not the JSON expected; is %s this service? %w", q.method, q.path, c.base, err)
	}
	return r, nil
}

// send makes the HTTP request. The caller closes the body.
func (c *Client) send(ctx context.Context, q request, body []byte) (*http.Response, error) {
	target := c.base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		req.Header.Set(keyHeader, q.key)
	}
	if c.o.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.APIKey)
	}
	for name, values := range q.header() {
		req.Header[name] = values
	}
	resp, err := c.o.HTTP.Do(req)
	if err != nil {
		return nil, &broken{err}
	}
	return resp, nil
}

func (q request) header() http.Header {
	if strings.HasSuffix(q.path, "/events") {
		return http.Header{"Accept": {"text/event-stream"}}
	}
	return http.Header{"Accept": {"application/json"}}
}

// broken is a connection that failed before the whole answer had come.
type broken struct{ err error }

func (b *broken) Error() string { return b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

// passing reports whether trying again may help.
func passing(err error) bool {
	var b *broken
	var p *Problem
	switch {
	case errors.As(err, &b):
		return !errors.Is(err, context.Canceled)
	case errors.As(err, &p):
		return p.Status == http.StatusTooManyRequests || p.Status >= 500
	}
	return false
}
