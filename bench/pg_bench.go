package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// oneRow is pgbench committing one row at a time, the smallest durable thing.
func oneRow(clients int) entrant {
	return entrant{"pgbench, one row a commit", func(ctx context.Context, d *database, w *watch) error {
		if _, err := d.pool.Exec(ctx, `CREATE TABLE one_row (id bigserial PRIMARY KEY, text text NOT NULL)`); err != nil {
			return err
		}
		return pgbench(ctx, d, w, clients, `INSERT INTO one_row (text) VALUES ('`+sentence+`');`)
	}}
}

// lifeScript is a task's whole durable life in plain SQL, statement by statement
// in three transactions, into the product's tables.
const lifeScript = `\set id random(1, 1000000000000000)
BEGIN;
INSERT INTO onereply.submissions VALUES ('bench', 'note', :id::text, '\x00'::bytea, :id::text, NULL, now(), now() + interval '1 hour');
INSERT INTO onereply.tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max, elapsed_max, elapsed_from, on_unknown, acceptance)
  VALUES (:id::text, 'note', 'bench', 'queued', now(), now(), 5, 3, '1 hour', now(), 'retry', 'current-assignment');
INSERT INTO onereply.inputs VALUES (:id::text, 'note', :id::text, '{"text":"` + sentence + `"}');
INSERT INTO notes VALUES (:id::text, 'user', '` + sentence + `');
COMMIT;
BEGIN;
UPDATE onereply.tasks SET version = version + 1, attempt = 'a', worker = 'w', status = 'running', lease_until = now() + interval '30 seconds', attempts_used = attempts_used + 1 WHERE id = :id::text;
INSERT INTO onereply.attempts (task_id, version, attempt, worker, started_at) VALUES (:id::text, 1, 'a', 'w', now());
COMMIT;
BEGIN;
UPDATE onereply.tasks SET status = 'completed', lease_until = NULL, ended_at = now() WHERE id = :id::text;
INSERT INTO onereply.responses VALUES (:id::text, 1, 'a', '{"text":"` + sentence + `"}', now());
UPDATE onereply.attempts SET outcome = 'accepted', ended_at = now() WHERE task_id = :id::text AND version = 1;
INSERT INTO notes VALUES (:id::text, 'assistant', '` + sentence + `');
COMMIT;
`

func lifeByStatement(clients int) entrant {
	return entrant{"plain SQL by statement (pgbench)", func(ctx context.Context, d *database, w *watch) error {
		p, err := product(ctx, d, pgKind(false, false), -1, nil) // for its tables
		if err != nil {
			return err
		}
		if err := p.close(); err != nil {
			return err
		}
		return pgbench(ctx, d, w, clients, lifeScript)
	}}
}

var (
	tpsLine  = regexp.MustCompile(`tps = ([0-9.]+) `)
	doneLine = regexp.MustCompile(`transactions actually processed: ([0-9]+)`)
)

// pgbench runs a script for the time of the contest. Its rate is its own, which
// leaves out the opening of connections.
func pgbench(ctx context.Context, d *database, w *watch, clients int, script string) error {
	file, err := os.CreateTemp("", "onereply-bench-*.sql")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(script); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(d.cluster.Bin(), "pgbench"), "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", "2",
		"-T", strconv.Itoa(int(contestTime/time.Second)), "-f", file.Name(), d.url)
	if err := w.begin(); err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgbench: %w: %s", err, out)
	}
	tps, done := tpsLine.FindSubmatch(out), doneLine.FindSubmatch(out)
	if tps == nil || done == nil {
		return fmt.Errorf("pgbench said nothing that was expected: %s", out)
	}
	n, err := strconv.Atoi(string(done[1]))
	if err != nil {
		return err
	}
	if err := w.end(n); err != nil {
		return err
	}
	w.rate, err = strconv.ParseFloat(string(tps[1]), 64)
	return err
}
