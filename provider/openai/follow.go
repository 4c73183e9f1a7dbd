package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// cancelWait bounds the request that asks the provider to stop a response whose
// caller has gone.
const cancelWait = 5 * time.Second

// Recover follows a response made in the background to its end. It asks as long
// as ctx lasts; a response that cannot be found for MissingFor, or does not begin
// for QueuedFor, gives a final unknown outcome.
func (m *Responses) Recover(ctx context.Context, operation string, emit func(delta string) error) (provider.Answer, error) {
	read := &reading{model: m.model, emit: emit, id: operation, saved: true, last: -1}
	return m.follow(ctx, read, nil)
}

// Cancel asks the provider to stop a response. It is no call: it can start
// nothing, and may be repeated.
func (m *Responses) Cancel(ctx context.Context, operation string) error {
	_, err := m.service.Cancel(ctx, operation, option.WithHTTPClient(m.lookup))
	return err
}

// pursuit is what lookups have met so far.
type pursuit struct {
	missing, queued time.Time // since when; zero: it is not
	polls           bool      // the response cannot be streamed
	pause           time.Duration
}

// follow looks a response up until it has ended, after a stream that broke off
// for the reason given.
func (m *Responses) follow(ctx context.Context, read *reading, err error) (provider.Answer, error) {
	p := &pursuit{pause: m.o.PollEvery}
	for read.end == nil {
		var own *ownError
		if errors.As(err, &own) {
			return provider.Answer{}, errors.Join(own.error, m.abandon(ctx, read, own))
		}
		if ctx.Err() != nil {
			return provider.Answer{}, fmt.Errorf("following response %s: %w", read.id, context.Cause(ctx))
		}
		err = m.look(ctx, read, p)
	}
	return read.answer(nil)
}

// look asks once how the response is, and streams what there is to stream. An
// error of its own, and only that, ends the pursuit.
func (m *Responses) look(ctx context.Context, read *reading, p *pursuit) error {
	response, err := m.service.Get(ctx, read.id, responses.ResponseGetParams{}, option.WithHTTPClient(m.lookup))
	switch code := status(err); {
	case err == nil && over(string(response.Status)):
		read.finish(*response, "")
		return nil
	case err == nil:
		p.missing = time.Time{}
		if since(&p.queued, response.Status == responses.ResponseStatusQueued) > m.o.QueuedFor {
			return m.lost(read, fmt.Sprintf("has not begun for %s", m.o.QueuedFor))
		}
		if !p.polls {
			before := read.events
			if err = m.resume(ctx, read, p); read.end != nil || read.events > before {
				p.pause = m.o.PollEvery
				return err
			}
		}
	case code == http.StatusNotFound:
		// Soon after it was made, and also after it has ended, a response may not
		// be found although it is there.
		if since(&p.missing, true) > m.o.MissingFor {
			return m.lost(read, fmt.Sprintf("was not found for %s", m.o.MissingFor))
		}
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout:
		return &ownError{onereply.UnknownOutcome(onereply.CodeProviderUnavailable, fmt.Errorf("looking up response %s: %w", read.id, err))}
	}
	var own *ownError
	if errors.As(err, &own) {
		return err
	}
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	p.pause = min(p.pause*3/2, 10*m.o.PollEvery)
	return err
}

// since notes since when something holds and returns for how long.
func since(start *time.Time, holds bool) time.Duration {
	switch {
	case !holds:
		*start = time.Time{}
		return 0
	case start.IsZero():
		*start = time.Now()
	}
	return time.Since(*start)
}

// resume streams the response from where the last stream broke off.
func (m *Responses) resume(ctx context.Context, read *reading, p *pursuit) error {
	var query responses.ResponseGetParams
	if read.last >= 0 {
		query.StartingAfter = param.NewOpt(read.last)
	}
	var answered int
	err := m.stream(ctx, read, func(ctx context.Context, body *provider.Tap) *ssestream.Stream[responses.ResponseStreamEventUnion] {
		// The SDK's own way to ask for a stream puts the wish into a body, which a
		// GET does not have.
		stream := m.service.GetStreaming(ctx, read.id, query, option.WithHTTPClient(m.lookup),
			option.WithQuery("stream", "true"), option.WithMiddleware(body.Middleware))
		answered = body.Status()
		return stream
	})
	p.polls = read.unnumbered || answered >= 400 && answered < 500 && answered != http.StatusNotFound && answered != http.StatusTooManyRequests
	return err
}

// lost gives up on a response: what became of it stays unknown for good. The
// pursuit ends with it, and the response is cancelled in case it lives.
func (m *Responses) lost(read *reading, why string) error {
	return &ownError{&onereply.CallError{
		Class: onereply.ClassUnknown, Code: onereply.CodeProviderUnavailable, Final: true,
		Err: fmt.Errorf("response %s %s", read.id, why),
	}}
}

// abandon asks the provider to stop a response that this side will not take:
// one it has judged, or whose id nobody knows. What only this process cannot go
// on with is left running for whoever takes over.
func (m *Responses) abandon(ctx context.Context, read *reading, why error) error {
	var judged *onereply.CallError
	open := errors.As(why, &judged) && judged.Class == onereply.ClassUnknown && !judged.Final
	if read.saved && (judged == nil || open) {
		return nil
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer end()
	if err := m.Cancel(ctx, read.id); err != nil && status(err) != http.StatusNotFound {
		return fmt.Errorf("asking the provider to stop response %s: %w", read.id, err)
	}
	return nil
}
