package pgcluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Standby copies the cluster and starts the copy as a standby, which follows it
// and can be read. Close it as well.
func (c *Cluster) Standby(ctx context.Context) (*Cluster, error) {
	return begin(ctx, c.env, func(s *Cluster) error {
		return s.run(ctx, "pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(c.port), "-U", "postgres",
			"-D", filepath.Join(s.dir, "data"), "-R", "-c", "fast", "--no-sync")
	})
}

// Promote makes a standby a server of its own and returns when it takes writes.
func (c *Cluster) Promote(ctx context.Context) error {
	return c.run(ctx, "pg_ctl", "promote", "-w", "-s", "-D", filepath.Join(c.dir, "data"))
}

// run runs one of the server's programs as the user that the server runs as.
func (c *Cluster) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	cmd.Dir = c.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}
