package main

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write deps.txt anew")

// TestTheBinaryHoldsWhatDepsSays keeps the list of packages outside the
// standard library in view: a new one must be seen in a review.
func TestTheBinaryHoldsWhatDepsSays(t *testing.T) {
	t.Parallel()
	// The list is of one platform, so that it is the same everywhere.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var foreign []string
	for line := range strings.Lines(string(out)) {
		path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path == "testing" || strings.HasPrefix(path, "testing/") || standard == "false" && strings.HasSuffix(path, "test") {
			t.Errorf("the binary holds %s; test code does not ship", path)
		}
		if standard == "false" {
			foreign = append(foreign, path)
		}
	}
	slices.Sort(foreign)
	got := strings.Join(foreign, "\n") + "\n"
	if *update {
		if err := os.WriteFile("deps.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("deps.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(want))
	for _, path := range foreign {
		if !slices.Contains(listed, path) {
			t.Errorf("new in the binary: %s", path)
		}
	}
	for _, path := range listed {
		if !slices.Contains(foreign, path) {
			t.Errorf("no longer in the binary: %s", path)
		}
	}
	if t.Failed() {
		t.Log("if this is meant: go test ./cmd/onereply -run Deps -update")
	}
}
