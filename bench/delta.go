package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const presses = 200

// firstDelta measures from the press of Send to the first text on the stream.
func firstDelta(ctx context.Context, l *lab, runs int) ([]figure, error) {
	p50, p99 := figure{Name: "p50", Unit: "ms"}, figure{Name: "p99", Unit: "ms"}
	accepted := figure{Name: "p50 of the answer to the POST", Unit: "ms"}
	for range runs {
		p, err := l.serve(ctx, "sqlite:"+l.file())
		if err != nil {
			return nil, err
		}
		first, posted, err := pressAll(ctx, p)
		if err != nil {
			return nil, err
		}
		p50.Values = append(p50.Values, percentile(first, 50))
		p99.Values = append(p99.Values, percentile(first, 99))
		accepted.Values = append(accepted.Values, percentile(posted, 50))
		if err := p.stop(); err != nil {
			return nil, err
		}
	}
	return []figure{p50, p99, accepted}, nil
}

func pressAll(ctx context.Context, p *process) (first, posted []float64, err error) {
	for n := range presses {
		c, err := p.conversation(ctx)
		if err != nil {
			return nil, nil, err
		}
		rest(ctx, time.Duration(n%7)*time.Millisecond) // not in step with anything
		began := time.Now()
		t, err := p.send(ctx, c, fmt.Sprint("press-", n), "hello")
		if err != nil {
			return nil, nil, err
		}
		posted = append(posted, millis(time.Since(began)))
		if err := p.delta(ctx, t.ID); err != nil {
			return nil, nil, err
		}
		first = append(first, millis(time.Since(began)))
		// Stopped, so that the next press does not meet a service full of replies.
		if err := p.post(ctx, "/v1/tasks/"+t.ID+"/cancel", "", struct{}{}, &t); err != nil {
			return nil, nil, err
		}
	}
	return first, posted, nil
}

// delta waits for the first text of a task's stream.
func (p *process) delta(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/v1/tasks/"+id+"/events", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: delta") {
			return nil
		}
		if strings.HasPrefix(lines.Text(), "event: ") && !strings.HasPrefix(lines.Text(), "event: reset") {
			return fmt.Errorf("task %s: %s before any delta", id, lines.Text())
		}
	}
	return fmt.Errorf("task %s: the stream ended before any delta: %w", id, lines.Err())
}
