//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// migrations counts those that this program knows.
func migrations(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("../store/postgres/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	return len(files)
}

// TestManyMigrateAtOnce: ten processes meet an empty database at the same
// moment, some of which only migrate.
func TestManyMigrateAtOnce(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.calm()
	program, url := binary(t, false), w.server.url(w.server.cluster.Address(), "")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if out, err := exec.Command(program, "migrate", "up", "--database", url).CombinedOutput(); err != nil {
				t.Errorf("migrate up: %v\n%s", err, out)
			}
		})
	}
	type started struct {
		p   *process
		out io.Reader
	}
	var all []started
	for _, roles := range []string{"api", "work", "work", "sweep"} {
		p, out := spawn(t, roles, launch{args: append(w.flags, "--roles", roles)})
		all = append(all, started{p, out})
	}
	for _, s := range all {
		s.p.awaitReady(s.out)
	}
	wg.Wait()
	p := all[0].p
	w.front, w.processes = p, []*process{p, all[1].p, all[2].p, all[3].p}
	if n := w.ledger().count("SELECT count(*) FROM schema_migrations"); n != migrations(t) {
		t.Errorf("%d migrations are recorded, want %d", n, migrations(t))
	}
	w.expect(p, w.ask(p, "q", nil).ID, once)
	w.settle(p)
}

// TestAnOlderProgramRefusesANewerSchema: in one line, whether it would serve or
// migrate. One that is running goes on.
func TestAnOlderProgramRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.calm()
	p := w.start(everything)
	w.plant("INSERT INTO schema_migrations (version, name, applied_at) VALUES (9001, '9001_of_a_later_version', now())")
	refusedStart(t, 1, launch{args: w.flags}, "9001_of_a_later_version", "later version")
	refusedStart(t, 1, launch{args: append(w.flags, "--migrate=false")}, "9001_of_a_later_version", "later version")
	out, err := exec.Command(binary(t, false), "migrate", "up", "--database", w.server.url(w.server.cluster.Address(), "")).CombinedOutput()
	if said := strings.TrimSpace(string(out)); err == nil || strings.Contains(said, "\n") || !strings.Contains(said, "9001_of_a_later_version") {
		t.Errorf("migrate up: %v\n%s", err, out)
	}
	w.expect(p, w.ask(p, "q", nil).ID, once)
	w.settle(p)
}

// laterMigration is what the next version might bring: a column and an index on
// the table that everything waits for, and a table of its own.
const laterMigration = `ALTER TABLE onereply.tasks ADD COLUMN later integer NOT NULL DEFAULT 0;
CREATE INDEX tasks_later ON onereply.tasks (later) WHERE later > 0;
CREATE TABLE onereply.later (task_id text NOT NULL PRIMARY KEY REFERENCES onereply.tasks (id) ON DELETE CASCADE);
`

// laterBinary builds the program with one more migration.
func laterBinary(t *testing.T) (program, name string) {
	t.Helper()
	dir := t.TempDir()
	name = fmt.Sprintf("%04d_later", migrations(t)+1)
	file := filepath.Join(dir, name+".sql")
	inPlace, err := filepath.Abs("../store/postgres/migrations/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {inPlace: file}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{file: laterMigration, filepath.Join(dir, "overlay.json"): string(overlay)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if program, err = build(dir, "onereply-later", "-overlay", filepath.Join(dir, "overlay.json")); err != nil {
		t.Fatal(err)
	}
	return program, name
}

// TestRollingUpgrade: 1. the previous version serves and works, under load,
// 2. the next one migrates while another program holds the tasks' table, 3. both
// work side by side, 4. the previous one ends, and cannot be started again.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	program, name := laterBinary(t)
	w.troubled = true // a press may be told to come back while the table is altered
	w.calm()
	old := w.start(everything)
	a := w.api(old)
	conversation := a.conversation()
	g := heldTasks(w, a, conversation, "held", 20)

	release := w.server.holdRow(w.ledger().text("SELECT min(id) FROM tasks"))
	upgrade := exec.CommandContext(t.Context(), program, "migrate", "up", "--database", w.server.url(w.server.cluster.Address(), ""))
	done := make(chan error, 1)
	go func() {
		out, err := upgrade.CombinedOutput()
		if err == nil && !strings.Contains(string(out), "applied "+name) {
			err = fmt.Errorf("it applied nothing: %s", out)
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		done <- err
	}()
	held := time.AfterFunc(5*time.Second, release)
	defer held.Stop()
	pressed, refused := insistUntil(w, a, conversation, "meanwhile", done)
	t.Logf("while the schema was altered, %d presses were taken and %d told to come back", pressed, refused)

	for _, roles := range []string{"api", "work", "sweep"} {
		p := startProcess(t, "later "+roles, launch{binary: program, args: append(w.flags, "--roles", roles)})
		w.processes = append(w.processes, p)
		if p.url != "" {
			w.front = p
		}
	}
	both := w.front
	insistMany(w, w.api(both), conversation, "later", 30)
	insistMany(w, a, conversation, "earlier", 30)
	g.open()
	allCompleted(w, pressed+80, true)
	old.kill()
	refusedStart(t, 1, launch{args: w.flags}, name, "later version")
	insist(w, w.api(both), conversation, "last", "last")
	allCompleted(w, pressed+81, true)
	w.settle(both)
	if n := w.ledger().count("SELECT count(*) FROM schema_migrations WHERE name = ?", name); n != 1 {
		t.Errorf("%s is recorded %d times", name, n)
	}
}
