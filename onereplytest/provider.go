package onereplytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"

	"github.com/onereply/onereply"
)

// Outcome is how a request to the provider ends.
type Outcome int

// The outcomes. Answer is what happens without a script.
const (
	// Answer: what the handler writes, whole.
	Answer Outcome = iota
	// NotSent: no connection could be made.
	NotSent
	// Limited: 429, come back later.
	Limited
	// Rejected: 400, the same inputs will never succeed.
	Rejected
	// Overloaded: 503, it may have run.
	Overloaded
	// Cut: half of the answer comes, then the connection breaks.
	Cut
	// Lost: the work is done, and the connection breaks before the answer.
	Lost
	// Silent: nothing comes until the request's context ends.
	Silent
)

// Provider plays the model. Give it to the program under test in place of the
// network: it is an http.RoundTripper, to be used as
//
//	provider.ClientWith(call, w.Provider)
//
// or, for Work that has a model of its own kind, call [Provider.Do] where that
// model would send. It is safe for concurrent use.
type Provider struct {
	w *World

	mu       sync.Mutex
	handler  http.Handler
	script   []Outcome
	requests int
}

// Handle sets what a whole answer is; an empty JSON object without it.
func (p *Provider) Handle(answer http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler = answer
}

// Script says how the next requests end. Later ones are answered.
func (p *Provider) Script(outcomes ...Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = outcomes
}

// Requests returns how many requests reached the provider.
func (p *Provider) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// next takes the next outcome off the script and counts the request.
func (p *Provider) next() (Outcome, http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := Answer
	if len(p.script) > 0 {
		o, p.script = p.script[0], p.script[1:]
	}
	if o != NotSent {
		p.requests++
	}
	return o, p.handler
}

// meet holds the request where its process is to be held in a call. Work that
// does not pass its context on is recognised by the hold that waits for it.
func (p *Provider) meet(ctx context.Context) error {
	from, ok := ctx.Value(processKey{}).(*Process)
	if !ok {
		if from = p.w.held(InCall); from == nil {
			return nil
		}
	}
	return from.at(ctx, InCall)
}

var errNoConnection = errors.New("planted: connection refused")

// Do is one request without HTTP. It returns nil when it was answered, else an
// error with its class.
func (p *Provider) Do(ctx context.Context) error {
	o, _ := p.next()
	if o == NotSent {
		return onereply.NotSent(onereply.CodeProviderUnavailable, errNoConnection)
	}
	if err := p.meet(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch o {
	case Limited:
		return onereply.RefusedTemporary(onereply.CodeRateLimited, 0, errors.New("planted: slow down"))
	case Rejected:
		return onereply.RefusedPermanent(onereply.CodeProviderRejected, errors.New("planted: bad request"))
	case Overloaded:
		return onereply.UnknownOutcome(onereply.CodeProviderOverloaded, errors.New("planted: overloaded"))
	case Cut, Lost:
		return onereply.UnknownOutcome(onereply.CodeProviderUnavailable, io.ErrUnexpectedEOF)
	case Silent:
		p.silence(ctx)
		return ctx.Err()
	}
	return nil
}

// silence lasts until the context ends, or the world.
func (p *Provider) silence(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-p.w.over:
	}
}

// RoundTrip is one request over HTTP.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	trace := httptrace.ContextClientTrace(r.Context())
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
	o, handler := p.next()
	if o == NotSent {
		return nil, errNoConnection
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	if trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	if err := p.meet(r.Context()); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return p.respond(r, o, handler)
}

func (p *Provider) respond(r *http.Request, o Outcome, handler http.Handler) (*http.Response, error) {
	status := map[Outcome]int{Limited: http.StatusTooManyRequests, Rejected: http.StatusBadRequest, Overloaded: http.StatusServiceUnavailable}
	answer := httptest.NewRecorder()
	switch {
	case o == Lost:
		return nil, io.ErrUnexpectedEOF
	case o == Silent:
		p.silence(r.Context())
		return nil, errors.Join(r.Context().Err(), io.ErrUnexpectedEOF)
	case status[o] != 0:
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(status[o])
		fmt.Fprint(answer, `{"error":{"message":"planted"}}`)
	case handler == nil:
		answer.Header().Set("Content-Type", "application/json")
		fmt.Fprint(answer, `{}`)
	default:
		handler.ServeHTTP(answer, r)
	}
	response := answer.Result()
	response.Request = r
	if o == Cut {
		whole := answer.Body.Bytes()
		response.ContentLength = -1
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), broken{}))
	}
	return response, nil
}

// broken is a connection that has broken.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
