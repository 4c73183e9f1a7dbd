package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// build builds the service.
func build(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "onereply")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./cmd/onereply")
	cmd.Dir = ".." // make bench and go run both start in bench/
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the service: %w\n%s", err, text)
	}
	return out, nil
}

// process is a child that says where it listens.
type process struct {
	cmd   *exec.Cmd
	url   string
	in    io.WriteCloser
	lines *bufio.Reader // what it prints
}

// start starts a program and waits for the line that begins with "listening on".
func start(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.lines = bufio.NewReader(out)
	for {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%s %v ended before it listened: %w", program, args, err)
		}
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on "); ok {
			p.url = at
			return p, nil
		}
	}
}

// serve starts the service on a database.
func (l *lab) serve(ctx context.Context, database string, more ...string) (*process, error) {
	return start(ctx, l.product, append([]string{"serve", "--listen", "127.0.0.1:0", "--database", database, "--log-level", "error"}, more...)...)
}

// child starts this program as a child process.
func (l *lab) child(ctx context.Context, args ...string) (*process, error) {
	return start(ctx, l.self, append([]string{"child"}, args...)...)
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// ask writes a line to the child and reads its answer.
func (p *process) ask(question string, answer any) error {
	if _, err := fmt.Fprintln(p.in, question); err != nil {
		return err
	}
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("asking a child %q: %w", question, err)
	}
	return json.Unmarshal(line, answer)
}

// post sends JSON under a key and decodes the answer.
func (p *process) post(ctx context.Context, path, key string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return do(r, into)
}

func (p *process) get(ctx context.Context, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return err
	}
	return do(r, into)
}

func do(r *http.Request, into any) error {
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s", r.Method, r.URL, response.Status, raw)
	}
	return json.Unmarshal(raw, into)
}

// task is what is read of a task.
type task struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Version int    `json:"assignment_version"`
	Worker  string `json:"worker"`
}

// conversation makes one.
func (p *process) conversation(ctx context.Context) (string, error) {
	var c struct {
		ID string `json:"id"`
	}
	err := p.post(ctx, "/v1/conversations", fmt.Sprint("conversation-", time.Now().UnixNano()), struct{}{}, &c)
	return c.ID, err
}

// send presses Send.
func (p *process) send(ctx context.Context, conversation, key, text string) (task, error) {
	var sent struct {
		Task task `json:"task"`
	}
	err := p.post(ctx, "/v1/conversations/"+conversation+"/messages", key, map[string]string{"text": text}, &sent)
	return sent.Task, err
}
