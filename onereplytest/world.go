package onereplytest

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/sqlite"
)

// World is one database file in a synctest bubble, with the processes that a
// test starts on it and the provider they call. Everything in it is real but
// the time and the network.
type World struct {
	// Store is a store on the world's file that no fault befalls: for reading, and
	// for what the program does beside the engine.
	Store *sqlite.Store
	// Provider plays the model.
	Provider *Provider

	t    *testing.T
	dir  string
	over chan struct{} // closed when the world ends

	mu        sync.Mutex
	processes []*Process
	stories   map[onereply.TaskID]*story
}

// Run runs a test in a world of its own, in which time is virtual: it passes
// when everyone waits.
func Run(t *testing.T, test func(t *testing.T, w *World)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "world.db"), sqlite.Options{
			Migrate: true, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatalf("opening a fresh file: %v", err)
		}
		w := &World{Store: s, t: t, dir: dir, over: make(chan struct{}), stories: map[onereply.TaskID]*story{}}
		w.Provider = &Provider{w: w}
		defer w.end()
		w.Exec(`CREATE TABLE onereplytest_hooks (task_id TEXT NOT NULL, hook TEXT NOT NULL, status TEXT NOT NULL)`)
		test(t, w)
	})
}

// Exec runs a statement of the program's own in a transaction: its tables and
// the rows it starts with.
func (w *World) Exec(statement string, args ...any) {
	w.t.Helper()
	err := w.Store.InTx(w.t.Context(), func(ctx context.Context, tx onereply.Tx) error {
		_, err := sqlite.Unwrap(tx).ExecContext(ctx, statement, args...)
		return err
	})
	if err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
}

// DB reads what is committed. It cannot write.
func (w *World) DB() *sql.DB { return w.Store.Reader() }

// end lets everyone go: living processes drain, then the killed ones are let out
// of where they hang.
func (w *World) end() {
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	for _, p := range processes {
		p.letGo()
	}
	for _, p := range processes {
		if p.killed() {
			continue
		}
		if err := p.Stop(); err != nil {
			w.t.Errorf("%s did not stop cleanly: %v", p.Name, err)
		}
	}
	close(w.over)
	for _, p := range processes {
		p.stop()
		<-p.left // how a killed one ends is nobody's business
	}
	if err := w.Store.Close(); err != nil {
		w.t.Errorf("closing the file: %v", err)
	}
}

// letGo releases whoever is held in the process and thaws it.
func (p *Process) letGo() {
	p.Thaw()
	p.mu.Lock()
	holds := p.all
	p.mu.Unlock()
	for _, h := range holds {
		h.Release()
	}
}

// held finds a process with a hold at the point.
func (w *World) held(point Point) *Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		p.mu.Lock()
		_, ok := p.holds[point]
		p.mu.Unlock()
		if ok {
			return p
		}
	}
	return nil
}
