package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryMutationFitsTheSource(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range mutations() {
		if names[m.name] {
			t.Errorf("two mutations are called %q", m.name)
		}
		names[m.name] = true
		for _, e := range m.edits {
			text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(e.file)))
			if err != nil {
				t.Errorf("%s: %v", m.name, err)
				continue
			}
			if changed, err := e.apply(string(text)); err != nil {
				t.Errorf("%s: %v", m.name, err)
			} else if changed == string(text) {
				t.Errorf("%s changes nothing", m.name)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	for _, c := range []struct {
		name, text string
		err        error
		want       string
	}{
		{"no failure means that nobody noticed", "ok  \tx\t1s\n", nil, "NOT NOTICED"},
		{"the deepest name is told", "--- FAIL: TestStore (0.1s)\n    --- FAIL: TestStore/accept/zombie (0.1s)\n", failed, killed + "TestStore/accept/zombie"},
		{"what does not build proves nothing", "FAIL\tx [build failed]\n", failed, "DOES NOT BUILD"},
		{"a test that hangs has noticed", "panic: test timed out after 3m0s\n", failed, killed + "a test that never ended"},
		{"a failure that names no test proves nothing", "exit status 2\n", failed, "FAILED WITHOUT A TEST'S NAME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := judge(c.text, c.err); got != c.want {
				t.Errorf("verdict is %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnEditMustFitExactlyOnce(t *testing.T) {
	t.Parallel()
	e := edit{file: "x.sql", before: "AND a", after: ""}
	if got, err := e.apply("WHERE 1 AND a"); err != nil || got != "WHERE 1 " {
		t.Errorf("got %q, %v", got, err)
	}
	for _, text := range []string{"WHERE 1", "AND a AND a"} {
		if _, err := e.apply(text); err == nil || !strings.Contains(err.Error(), "up to date") {
			t.Errorf("%q: error is %v", text, err)
		}
	}
}
