package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/internal/pgcluster"
	"github.com/onereply/onereply/store/postgres"
)

// BenchmarkSubmit and BenchmarkLife run on a cluster with fsync on, beside what
// pgbench makes there committing one row at a time; see bench/ for figures that
// are meant to be quoted.
func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{16, 64} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			e, _, _ := durable(b, -1, nil)
			apart(b, callers, func(n int64) error {
				_, err := e.Submit(b.Context(), press(fmt.Sprint(n)))
				return err
			})
		})
	}
}

func BenchmarkLife(b *testing.B) {
	for _, callers := range []int{64, 256} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			ended := &ends{waiting: map[onereply.TaskID]chan struct{}{}}
			e, _, _ := durable(b, 256, ended)
			ids := onereply.NewIDs()
			apart(b, callers, func(n int64) error {
				sub := press(fmt.Sprint(n))
				sub.TaskID = onereply.TaskID(ids.New())
				done := ended.of(sub.TaskID)
				if _, err := e.Submit(b.Context(), sub); err != nil {
					return err
				}
				<-done
				return nil
			})
		})
	}
}

// ends tells when tasks were accepted, without reading them.
type ends struct {
	mu      sync.Mutex
	waiting map[onereply.TaskID]chan struct{}
}

func (e *ends) of(id onereply.TaskID) <-chan struct{} {
	done := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[id] = done
	return done
}

func (e *ends) Observe(s onereply.Step) {
	if s.Type != onereply.EventAccepted {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.waiting[s.Task])
	delete(e.waiting, s.Task)
}

// BenchmarkPgbench is the yardstick on the same cluster: one row a commit.
func BenchmarkPgbench(b *testing.B) {
	for _, clients := range []int{16, 64} {
		b.Run(fmt.Sprint(clients, " clients"), func(b *testing.B) {
			_, cluster, p := durable(b, -1, nil)
			if _, err := p.Exec(b.Context(), "CREATE TABLE one_row (id bigserial PRIMARY KEY, text text NOT NULL)"); err != nil {
				b.Fatal(err)
			}
			script := filepath.Join(b.TempDir(), "one.sql")
			if err := os.WriteFile(script, []byte("INSERT INTO one_row (text) VALUES ('hello');\n"), 0o600); err != nil {
				b.Fatal(err)
			}
			bin, err := pgcluster.Find()
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			out, err := exec.CommandContext(b.Context(), filepath.Join(bin, "pgbench"), "-n", "-M", "prepared", "-c", fmt.Sprint(clients), "-j", "2",
				"-t", fmt.Sprint(max(1, b.N/clients)), "-f", script, cluster.URL("postgres")).CombinedOutput()
			if err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// durable is an engine on a cluster that waits for the disk.
func durable(b *testing.B, workers int, o onereply.Observer) (*engine.Engine, *pgcluster.Cluster, *pgxpool.Pool) {
	b.Helper()
	needServer(b)
	cluster, err := pgcluster.Start(b.Context(), "shared_buffers = '256MB'", "max_wal_size = '4GB'")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			b.Error(err)
		}
	})
	c, err := pgxpool.ParseConfig(cluster.URL("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	c.MaxConns = 10
	p := pool(b, c)
	s, err := postgres.New(p, postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := s.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	kind := onereply.Kind{Name: "reply"}
	if workers > 0 {
		kind = (&onereply.Definition[struct{}, string]{Name: "reply", Work: func(context.Context, onereply.Attempt, struct{}) (string, error) {
			return "done", nil
		}}).Kind()
	}
	e, err := engine.New(engine.Options{Store: s, Kinds: []onereply.Kind{kind}, Workers: workers, Observer: o})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return e, cluster, p
}

// apart runs op b.N times from so many callers.
func apart(b *testing.B, callers int, op func(n int64) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := op(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
