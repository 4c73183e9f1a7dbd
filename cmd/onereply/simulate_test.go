package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSimulateAnswersByItsScript(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(file, []byte(`[{"match":"weather","markers":"[[say sunny]]"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	var stderr bytes.Buffer
	p := &process{stdout: in, stderr: &stderr, lookup: func(string) (string, bool) { return "", false }}
	code := make(chan int, 1)
	go func() { code <- p.run(ctx, []string{"simulate", "--listen", "127.0.0.1:0", "--script", file}) }()
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // the hints
	_, at, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	if !found {
		t.Fatalf("it says %q", line)
	}
	response, err := http.Post(at+"/v1/responses", "application/json", strings.NewReader(`{"model":"m","stream":true,"input":"the weather?"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || !strings.Contains(string(body), "sunny") {
		t.Errorf("it answers %s, %v", body, err)
	}
	stop()
	if got := <-code; got != exitDone {
		t.Errorf("exit code %d, %s", got, &stderr)
	}
}

func TestSimulateRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`[{"markers":"[[nonsense]]"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--script", bad}, exitFailed, "nonsense"},
		{[]string{"--script", bad + "x"}, exitFailed, "no such file"},
		{[]string{"more"}, exitUsage, "unexpected argument"},
		{[]string{"--listen", "nowhere"}, exitFailed, "--listen nowhere"},
	} {
		var stderr bytes.Buffer
		p := &process{stdout: io.Discard, stderr: &stderr, lookup: func(string) (string, bool) { return "", false }}
		if got := p.run(t.Context(), append([]string{"simulate"}, c.args...)); got != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, got, &stderr)
		}
	}
}
