package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const recoveryLease = 3 * time.Second

// recovery measures from the SIGKILL of the process that works on a task to the
// moment another one runs it.
func recovery(ctx context.Context, l *lab, runs int) ([]figure, error) {
	took := figure{Name: "kill to running again", Unit: "s"}
	limit := figure{Name: "lease + 1 s", Unit: "s"}
	for n := range runs {
		seconds, err := recoverOnce(ctx, l, "sqlite:"+l.file(), n)
		if err != nil {
			return nil, err
		}
		took.Values = append(took.Values, seconds)
		limit.Values = append(limit.Values, (recoveryLease + time.Second).Seconds())
	}
	return []figure{took, limit}, nil
}

func recoverOnce(ctx context.Context, l *lab, database string, n int) (float64, error) {
	both := map[string]*process{}
	var any *process
	for range 2 {
		p, err := l.serve(ctx, database, "--lease", recoveryLease.String(), "--renew", "1s", "--demo-delay", "1s")
		if err != nil {
			return 0, err
		}
		both[fmt.Sprintf("-%d-", p.cmd.Process.Pid)] = p
		any = p
	}
	c, err := any.conversation(ctx)
	if err != nil {
		return 0, err
	}
	t, err := any.send(ctx, c, "k", "hello")
	if err != nil {
		return 0, err
	}
	var working, other *process
	for working == nil {
		if err := any.get(ctx, "/v1/tasks/"+t.ID, &t); err != nil {
			return 0, err
		}
		for mark, p := range both {
			if t.Status == "running" && strings.Contains(t.Worker, mark) {
				working = p
			}
		}
		rest(ctx, 5*time.Millisecond)
	}
	for _, p := range both {
		if p != working {
			other = p
		}
	}
	rest(ctx, time.Duration(n)*300*time.Millisecond) // at another moment of the lease each time
	if err := working.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	killed := time.Now()
	_ = working.cmd.Wait() // it was killed, which is an error of its own
	for t.Version < 2 || t.Status != "running" {
		if err := other.get(ctx, "/v1/tasks/"+t.ID, &t); err != nil {
			return 0, err
		}
		if time.Since(killed) > time.Minute {
			return 0, fmt.Errorf("task %s is %s version %d a minute after the kill", t.ID, t.Status, t.Version)
		}
		rest(ctx, 5*time.Millisecond)
	}
	seconds := time.Since(killed).Seconds()
	if err := other.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	_ = other.cmd.Wait()
	return seconds, nil
}
