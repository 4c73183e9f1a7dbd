// Package pgcluster starts a private PostgreSQL server for tests: a cluster of
// its own in a temporary directory, on a free port of the loopback address, and
// gone when the test process is done with it. It needs the server's binaries on
// the machine and nothing else.
package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// ErrNoServer says that this machine has no PostgreSQL server binaries.
var ErrNoServer = errors.New("no postgresql server binaries on this machine")

// Cluster is a running server.
type Cluster struct {
	dir  string
	bin  string
	port int
	env  []string // of the server, beside this process's own
	cred *syscall.Credential
	cmd  *exec.Cmd
	done chan struct{}
	logs *os.File
}

// Find returns the directory with initdb and postgres, or ErrNoServer.
func Find() (string, error) {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("looking for %s: %w", pattern, err)
		}
		slices.Sort(found)
		slices.Reverse(found)
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		_, one := os.Stat(filepath.Join(dir, "initdb"))
		_, two := os.Stat(filepath.Join(dir, "postgres"))
		if one == nil && two == nil {
			return dir, nil
		}
	}
	return "", ErrNoServer
}

// Start makes a cluster and starts its server. Settings are lines of
// postgresql.conf, such as "fsync = off". Close it.
func Start(ctx context.Context, settings ...string) (*Cluster, error) {
	return StartIn(ctx, nil, settings...)
}

// StartIn is Start with variables for the server's environment, such as a
// library to load before its own.
func StartIn(ctx context.Context, env []string, settings ...string) (*Cluster, error) {
	return begin(ctx, env, func(c *Cluster) error { return c.create(ctx, settings) })
}

// begin makes a cluster's directory, has it filled, and starts the server.
func begin(ctx context.Context, env []string, fill func(*Cluster) error) (*Cluster, error) {
	bin, err := Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "onereply-pg-")
	if err != nil {
		return nil, fmt.Errorf("directory of the cluster: %w", err)
	}
	c := &Cluster{dir: dir, bin: bin, env: env}
	if os.Geteuid() == 0 { // whom the server refuses
		err = c.unprivileged()
	}
	if err == nil {
		err = c.Move()
	}
	if err == nil {
		err = fill(c)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.StartServer(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// create runs initdb and writes the settings.
func (c *Cluster) create(ctx context.Context, settings []string) error {
	data := filepath.Join(c.dir, "data")
	err := c.run(ctx, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if err != nil {
		return err
	}
	var conf bytes.Buffer
	fmt.Fprintln(&conf, "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 200\nshared_buffers = '64MB'")
	for _, line := range settings {
		fmt.Fprintln(&conf, line)
	}
	file, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("settings of the cluster: %w", err)
	}
	_, err = file.Write(conf.Bytes())
	return errors.Join(err, file.Close())
}

// unprivileged finds the user to run as, and gives the directory to it.
func (c *Cluster) unprivileged() error {
	var found *user.User
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			found = u
			break
		}
	}
	if found == nil {
		return errors.New("root cannot run postgres, and there is neither a user postgres nor nobody")
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return fmt.Errorf("uid of %s: %w", found.Username, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return fmt.Errorf("gid of %s: %w", found.Username, err)
	}
	c.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(c.dir, int(uid), int(gid))
}

// Move gives the server another free port, from its next start on.
func (c *Cluster) Move() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("finding a free port: %w", err)
	}
	c.port = l.Addr().(*net.TCPAddr).Port
	return l.Close()
}

// StartServer starts the server, again after Stop, and waits until it answers.
func (c *Cluster) StartServer(ctx context.Context) error {
	logs, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log of the server: %w", err)
	}
	c.logs = logs
	c.cmd = exec.Command(filepath.Join(c.bin, "postgres"), "-D", filepath.Join(c.dir, "data"), "-p", strconv.Itoa(c.port))
	c.cmd.Env = append(c.cmd.Environ(), c.env...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = c.dir, logs, logs
	if err := c.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting postgres: %w", err), logs.Close())
	}
	done := make(chan struct{})
	c.done = done
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait() // how it ended is in its log
		close(done)
	}(c.cmd)
	return c.ready(ctx)
}

// ready waits until the server accepts connections: pg_isready's question, asked
// by the client program that the server ships with.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		probe := exec.CommandContext(ctx, filepath.Join(c.bin, "pg_isready"), "-h", "127.0.0.1", "-p", strconv.Itoa(c.port), "-q")
		said, err := probe.CombinedOutput()
		if err == nil {
			return nil
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-c.done:
			timer.Stop()
			log, err := os.ReadFile(filepath.Join(c.dir, "log"))
			return errors.Join(fmt.Errorf("postgres ended before it was ready: %s", log), err)
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for postgres on port %d: %w: %w: %s", c.port, context.Cause(ctx), err, said)
		}
	}
}

// Stop ends the server: fast, or immediately as a crash does.
func (c *Cluster) Stop(immediate bool) error {
	if c.cmd == nil {
		return nil
	}
	sig := syscall.SIGINT
	if immediate {
		sig = syscall.SIGQUIT
	}
	err := c.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-c.done
	c.cmd = nil
	return errors.Join(err, c.logs.Close())
}

// URL is the address of a database of the cluster; "postgres" is always there.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

// Address is host and port.
func (c *Cluster) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// Pid is the process id of the running server, whose children serve the
// connections; 0 where it is stopped.
func (c *Cluster) Pid() int {
	if c.cmd == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// Bin is the directory of the server's programs, pgbench among them where it is
// installed.
func (c *Cluster) Bin() string { return c.bin }

// Close stops the server and removes the cluster.
func (c *Cluster) Close() error {
	return errors.Join(c.Stop(true), os.RemoveAll(c.dir))
}
