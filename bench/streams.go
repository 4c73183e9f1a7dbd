package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

const readers = 10_000

// streams measures what a waiting reader costs the server.
func streams(ctx context.Context, l *lab, runs int) ([]figure, error) {
	memory := figure{Name: "heap and stacks per stream", Unit: "KB"}
	resident := figure{Name: "resident per stream", Unit: "KB"}
	opened := figure{Name: "time to open them all", Unit: "s"}
	for range min(runs, 3) { // it does not vary
		if err := streamsOnce(ctx, l, &memory, &resident, &opened); err != nil {
			return nil, err
		}
	}
	return []figure{memory, resident, opened}, nil
}

func streamsOnce(ctx context.Context, l *lab, memory, resident, opened *figure) error {
	p, err := l.child(ctx, "service", l.file())
	if err != nil {
		return err
	}
	var parked, before, after status
	if err := p.ask(fmt.Sprintf("park %d", readers), &parked); err != nil {
		return err
	}
	if parked.Failed != "" {
		return fmt.Errorf("the child: %s", parked.Failed)
	}
	if err := p.ask("status", &before); err != nil {
		return err
	}
	was, err := usage(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	connections, err := follow(ctx, p.url, parked.Tasks)
	defer func() {
		for _, c := range connections {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	opened.Values = append(opened.Values, time.Since(began).Seconds())
	rest(ctx, 20*time.Second) // past a heartbeat
	if err := p.ask("status", &after); err != nil {
		return err
	}
	is, err := usage(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	memory.Values = append(memory.Values, (float64(after.Heap+after.Stack)-float64(before.Heap+before.Stack))/readers/1024)
	resident.Values = append(resident.Values, float64(is.resident-was.resident)/readers/1024)
	return p.stop()
}

// follow opens a stream for every task.
func follow(ctx context.Context, url string, tasks []string) ([]net.Conn, error) {
	address := strings.TrimPrefix(url, "http://")
	var mu sync.Mutex
	var connections []net.Conn
	err := atOnce(16, len(tasks), func(i int) error {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		mu.Lock()
		connections = append(connections, c)
		mu.Unlock()
		if _, err := fmt.Fprintf(c, "GET /v1/tasks/%s/events HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", tasks[i], address); err != nil {
			return err
		}
		line, err := bufio.NewReaderSize(c, 512).ReadString('\n')
		if err == nil && !strings.Contains(line, "200") {
			err = fmt.Errorf("the stream answered %q", line)
		}
		return err
	})
	return connections, err
}
