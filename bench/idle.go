package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const idleTime = 10 * time.Second

// idle watches the service while it has nothing to do. The statements are those
// of an engine of the same settings in a child of this program, which counts them.
func idle(ctx context.Context, l *lab, runs int) ([]figure, error) {
	cpu := figure{Name: "CPU of one core", Unit: "%"}
	wrote := figure{Name: "bytes written by the process", Unit: "B"}
	grew := figure{Name: "changes of the file and its log", Unit: ""}
	resident := figure{Name: "resident memory", Unit: "MB"}
	calls := figure{Name: "calls of the store", Unit: "/s"}
	for range runs {
		if err := idleOnce(ctx, l, &cpu, &wrote, &grew, &resident); err != nil {
			return nil, err
		}
		n, err := idleCalls(ctx, l)
		if err != nil {
			return nil, err
		}
		calls.Values = append(calls.Values, n)
	}
	return []figure{cpu, wrote, grew, calls, resident}, nil
}

func idleOnce(ctx context.Context, l *lab, cpu, wrote, grew, resident *figure) error {
	file := l.file()
	p, err := l.serve(ctx, "sqlite:"+file, "--demo-delay", "0s")
	if err != nil {
		return err
	}
	c, err := p.conversation(ctx)
	if err != nil {
		return err
	}
	t, err := p.send(ctx, c, "k", "hello")
	if err != nil {
		return err
	}
	if err := p.get(ctx, "/v1/tasks/"+t.ID+"?wait=30s", &t); err != nil || t.Status != "completed" {
		return fmt.Errorf("the reply is %s: %w", t.Status, err)
	}
	rest(ctx, 3*time.Second)
	before, err := usage(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	was := stamps(file)
	rest(ctx, idleTime)
	after, err := usage(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	changes := 0.0
	for name, is := range stamps(file) {
		if was[name] != is {
			changes++
		}
	}
	cpu.Values = append(cpu.Values, 100*(after.cpu-before.cpu).Seconds()/idleTime.Seconds())
	wrote.Values = append(wrote.Values, float64(after.written-before.written))
	grew.Values = append(grew.Values, changes)
	resident.Values = append(resident.Values, float64(after.resident)/(1<<20))
	return p.stop()
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// stamps are size and time of change of the database's files.
func stamps(file string) map[string]string {
	found := map[string]string{}
	for _, name := range []string{file, file + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			found[name] = fmt.Sprint(info.Size(), info.ModTime())
		}
	}
	return found
}

// used is what the kernel says of a process.
type used struct {
	cpu      time.Duration
	written  int64
	resident int64
}

func usage(pid int) (u used, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return u, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return u, err
	}
	u.cpu = time.Duration(user+system) * 10 * time.Millisecond // the kernel's ticks for users are hundredths
	pages, err := strconv.ParseInt(fields[21], 10, 64)
	if err != nil {
		return u, err
	}
	u.resident = pages * int64(os.Getpagesize())
	raw, err = os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			u.written, err = strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		}
	}
	return u, err
}

// idleCalls counts what an idle engine asks of its store.
func idleCalls(ctx context.Context, l *lab) (float64, error) {
	p, err := l.child(ctx, "service", l.file())
	if err != nil {
		return 0, err
	}
	rest(ctx, 2*time.Second)
	var before, after status
	if err := p.ask("status", &before); err != nil {
		return 0, err
	}
	rest(ctx, idleTime/2)
	if err := p.ask("status", &after); err != nil {
		return 0, err
	}
	return float64(after.Calls-before.Calls) / (idleTime / 2).Seconds(), p.stop()
}
