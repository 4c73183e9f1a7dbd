package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrGaveUp: the server could not be reached, or kept refusing for now, for as
// long as the client's patience lasts.
var ErrGaveUp = errors.New("gave up")

// patience spaces the tries of one request or stream and ends them when nothing
// has come of it for too long.
type patience struct {
	c     *Client
	tries int
	since time.Time
}

func (c *Client) patience() *patience { return &patience{c: c, since: time.Now()} }

// progress starts the count anew.
func (p *patience) progress() { p.tries, p.since = 0, time.Now() }

// wait sleeps before the next try, or says that there will be none: ctx's cause,
// or an error matching ErrGaveUp that wraps why the last try failed.
func (p *patience) wait(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.tries++
	delay := p.c.o.Backoff.Delay(p.tries, p.c.o.Draw)
	var problem *Problem
	if errors.As(cause, &problem) {
		delay = max(delay, problem.RetryAfter)
	}
	if spent := time.Since(p.since); spent+delay > p.c.o.Patience {
		return fmt.Errorf("%w after %d tries in %v: %w", ErrGaveUp, p.tries, spent.Round(time.Millisecond), cause)
	}
	p.c.o.Retrying(cause, delay)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
