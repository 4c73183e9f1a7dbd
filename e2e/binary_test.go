//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// builds makes each binary once for the whole package.
type builds struct {
	dir     string
	shipped func() (string, error)
	crashes func() (string, error)
}

// binaries is set before any test runs.
var binaries builds

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		// These tests wait for leases and processes far more than they compute.
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "onereply-e2e-")
	if err != nil {
		panic(err)
	}
	binaries = builds{
		dir:     dir,
		shipped: sync.OnceValues(func() (string, error) { return build(dir, "onereply") }),
		crashes: sync.OnceValues(func() (string, error) { return build(dir, "onereply-crashpoints", "-tags", "crashpoints") }),
	}
	code := m.Run()
	if err := endSharedCluster(); err != nil {
		fmt.Fprintln(os.Stderr, "removing the cluster:", err)
		code = 1
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "removing the binaries:", err)
	}
	os.Exit(code)
}

func build(dir, name string, flags ...string) (string, error) {
	path := filepath.Join(dir, name)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	args := append([]string{"build", "-o", path}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/onereply")...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return path, nil
}

// binary gives the path of the binary that ships, or of the one with crash points.
func binary(t *testing.T, crashPoints bool) string {
	t.Helper()
	get := binaries.shipped
	if crashPoints {
		get = binaries.crashes
	}
	path, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
