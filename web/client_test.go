package web_test

import (
	"os/exec"
	"testing"
)

// The client's own tests are JavaScript and need Node; the browser tests in
// e2e drive the same code in Chromium.
func TestClientLibrary(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: no node on this machine; the client library's unit tests did not run")
	}
	command := exec.CommandContext(t.Context(), node, "--test", "test/")
	command.Dir = "client"
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("node --test: %v\n%s", err, output)
	}
}
