//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // reads the file without the store under test
)

// ledger reads the service's file or database behind its back.
type ledger struct {
	t        *testing.T
	db       reader
	onServer bool
}

// reader is a database, or a transaction of one.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// in writes a query as the database wants it.
func (l *ledger) in(query string) string {
	if l.onServer {
		return numberedPlaces(query)
	}
	return query
}

func openLedger(t *testing.T, file string) *ledger {
	t.Helper()
	u := url.URL{Scheme: "file", Opaque: file, RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &ledger{t: t, db: db}
}

// count gives the one number that a query asks for.
func (l *ledger) count(query string, args ...any) int {
	l.t.Helper()
	var n sql.NullInt64
	if err := l.db.QueryRowContext(context.Background(), l.in(query), args...).Scan(&n); err != nil {
		l.t.Fatalf("%s: %v", query, err)
	}
	return int(n.Int64)
}

func (l *ledger) text(query string, args ...any) string {
	l.t.Helper()
	var s sql.NullString
	err := l.db.QueryRowContext(context.Background(), l.in(query), args...).Scan(&s)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		l.t.Fatalf("%s: %v", query, err)
	}
	return s.String
}

func (l *ledger) claimedAt(id string, version int64) time.Time {
	l.t.Helper()
	return time.UnixMilli(int64(l.count("SELECT started_at FROM attempts WHERE task_id = ? AND version = ?", id, version)))
}

// leaseUntil is when a task's lease ends.
func (l *ledger) leaseUntil(id string) time.Time {
	l.t.Helper()
	return time.UnixMilli(int64(l.count("SELECT lease_until FROM tasks WHERE id = ?", id)))
}

// inFlight counts what has not ended.
func (l *ledger) inFlight() int {
	l.t.Helper()
	return l.count("SELECT count(*) FROM tasks WHERE status IN ('queued', 'running')")
}

// ends gives how every ended task ended, in a form that two readings can be compared by.
func (l *ledger) ends() map[string]string {
	l.t.Helper()
	rows, err := l.db.QueryContext(context.Background(), `SELECT t.id, t.status, t.reason, t.error_code, t.version, t.attempt, t.ended_at,
		t.calls_used, t.attempts_used, coalesce(r.response, '') FROM tasks t LEFT JOIN responses r ON r.task_id = t.id
		WHERE t.status NOT IN ('queued', 'running')`)
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	ends := map[string]string{}
	for rows.Next() {
		var id, status, reason, code, attempt, response string
		var version, endedAt, calls, attempts int64
		if err := rows.Scan(&id, &status, &reason, &code, &version, &attempt, &endedAt, &calls, &attempts, &response); err != nil {
			l.t.Fatal(err)
		}
		ends[id] = fmt.Sprintf("%s %s %s v%d %s at %d calls %d attempts %d %s", status, reason, code, version, attempt, endedAt, calls, attempts, response)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	return ends
}

// rules are what must hold for every task, each with a query that counts where
// it does not, and a statement that breaks it where there is one completed task.
var rules = []struct{ promise, violations, breakIt string }{
	{"a task has at most one response (P3)",
		"SELECT count(*) FROM (SELECT task_id FROM responses GROUP BY task_id HAVING count(*) > 1) twice", ""},
	{"a response exists if and only if the task is completed (P4)",
		"SELECT count(*) FROM tasks t LEFT JOIN responses r ON r.task_id = t.id WHERE (t.status = 'completed') <> (r.task_id IS NOT NULL)",
		"DELETE FROM responses"},
	{"a completed reply has one assistant message, with the response's text, unless its conversation is gone (P4)",
		`SELECT count(*) FROM tasks t JOIN inputs i ON i.task_id = t.id JOIN responses r ON r.task_id = t.id
		 JOIN conversations c ON c.id = json_extract(i.input, '$.conversation')
		 WHERE t.kind = 'reply' AND (SELECT count(*) FROM messages m WHERE m.task_id = t.id AND m.role = 'assistant'
		   AND m.text = json_extract(r.response, '$.text')) <> 1`,
		"UPDATE messages SET text = 'another text' WHERE role = 'assistant'"},
	{"a task that did not complete has no assistant message (P4)",
		"SELECT count(*) FROM messages m JOIN tasks t ON t.id = m.task_id WHERE m.role = 'assistant' AND t.status <> 'completed'",
		"UPDATE tasks SET status = 'failed'"},
	{"no message without its task (P2)",
		"SELECT count(*) FROM messages m LEFT JOIN tasks t ON t.id = m.task_id WHERE t.id IS NULL",
		"UPDATE messages SET task_id = 'none' WHERE role = 'user'"},
	{"calls used are calls recorded (P8)",
		"SELECT count(*) FROM tasks t WHERE t.calls_used <> (SELECT count(*) FROM calls c WHERE c.task_id = t.id)",
		"UPDATE tasks SET calls_used = 0"},
	{"calls and attempts stay within their budgets (P8)",
		"SELECT count(*) FROM tasks WHERE calls_used > calls_max OR attempts_used > attempts_max",
		"UPDATE tasks SET attempts_max = 0"},
	{"one count is at most one physical request (P8)",
		"SELECT count(*) FROM calls WHERE requests > 1",
		"UPDATE calls SET requests = 2"},
	{"an ended task has no lease and no open call",
		`SELECT count(*) FROM tasks t WHERE t.status NOT IN ('queued', 'running') AND (t.open_call <> 0 OR t.lease_until <> 0
		   OR EXISTS (SELECT 1 FROM calls c WHERE c.task_id = t.id AND c.closed_at = 0))`,
		"UPDATE calls SET closed_at = 0"},
	{"an ended task has no open attempt",
		"SELECT count(*) FROM tasks t JOIN attempts a ON a.task_id = t.id WHERE t.status NOT IN ('queued', 'running') AND a.outcome = ''",
		"UPDATE attempts SET outcome = ''"},
	{"an ended task has no draft",
		"SELECT count(*) FROM tasks t JOIN drafts d ON d.task_id = t.id WHERE t.status NOT IN ('queued', 'running')",
		"INSERT INTO drafts (task_id, version, seq, text) SELECT id, version, 1, 'left' FROM tasks"},
	{"at most one attempt of a task was accepted (P3)",
		"SELECT count(*) FROM (SELECT task_id FROM attempts WHERE outcome = 'accepted' GROUP BY task_id HAVING count(*) > 1) twice",
		anotherAccepted},
	{"no attempt is of a version that was never handed out (P5)",
		"SELECT count(*) FROM tasks t WHERE t.version < (SELECT coalesce(max(version), 0) FROM attempts a WHERE a.task_id = t.id)",
		"UPDATE tasks SET version = 0"},
}

// anotherAccepted adds an accepted attempt to every task.
const anotherAccepted = "INSERT INTO attempts (task_id, version, attempt, worker, started_at, ended_at, outcome) SELECT task_id, 0, 'another', worker, started_at, ended_at, outcome FROM attempts"

// ofFiles are rules that a server keeps by itself.
var ofFiles = []struct{ promise, violations, breakIt string }{
	{"foreign keys hold", "SELECT count(*) FROM pragma_foreign_key_check",
		"INSERT INTO progress (task_id, version, state, recorded_at) VALUES ('none', 1, x'00', 1)"},
	{"the file is sound", "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'", ""},
}

// violations lists the promises that are broken.
func (l *ledger) violations() (broken []string) {
	l.t.Helper()
	all := rules
	if !l.onServer {
		all = slices.Concat(rules, ofFiles)
	}
	for _, rule := range all {
		if n := l.count(rule.violations); n != 0 {
			broken = append(broken, fmt.Sprintf("%s: %d times", rule.promise, n))
		}
	}
	return broken
}

// balance reports every promise that is broken.
func (l *ledger) balance() {
	l.t.Helper()
	for _, broken := range l.violations() {
		l.t.Errorf("violated: %s", broken)
	}
}

// TestTheLedgerFindsWhatIsBroken plants every violation in a file that balances.
func TestTheLedgerFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(everything)
	w.expect(p, w.ask(p, "q", nil).ID, once)
	w.settle(p)
	p.kill()
	raw, err := os.ReadFile(w.file)
	wal, walErr := os.ReadFile(w.file + "-wal")
	if err = errors.Join(err, walErr); err != nil {
		t.Fatal(err)
	}
	for i, rule := range slices.Concat(rules, ofFiles) {
		if rule.breakIt == "" {
			continue // the schema refuses it, or no statement can do it
		}
		broken := &world{t: t, file: filepath.Join(w.dir, fmt.Sprintf("broken-%d.db", i))}
		if err := errors.Join(os.WriteFile(broken.file, raw, 0o600), os.WriteFile(broken.file+"-wal", wal, 0o600)); err != nil {
			t.Fatal(err)
		}
		broken.plant(rule.breakIt)
		found := strings.Join(broken.ledger().violations(), "\n")
		if !strings.Contains(found, rule.promise) {
			t.Errorf("%q broke nothing that was found; wanted %q, found:\n%s", rule.breakIt, rule.promise, found)
		}
	}
}

// onServer are the statements of rules that break the file and need other words
// on a server.
var onServer = map[string]string{
	"UPDATE calls SET closed_at = 0": "UPDATE onereply.calls SET closed_at = NULL",
	anotherAccepted:                  strings.ReplaceAll(anotherAccepted, " attempts", " onereply.attempts"),
}

// TestTheLedgerFindsWhatIsBrokenOnPostgres plants every violation in a
// transaction that is undone.
func TestTheLedgerFindsWhatIsBrokenOnPostgres(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	p := w.start(everything)
	w.expect(p, w.ask(p, "q", nil).ID, once)
	w.settle(p)
	db := w.server.connect(w.server.database, "&search_path=ledger,onereply")
	defer db.Close()
	for _, rule := range rules {
		statement := rule.breakIt
		if other := onServer[statement]; other != "" {
			statement = other
		}
		if statement == "" {
			continue
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			_, err = tx.ExecContext(t.Context(), statement)
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		found := strings.Join((&ledger{t: t, db: tx, onServer: true}).violations(), "\n")
		if !strings.Contains(found, rule.promise) {
			t.Errorf("%q broke nothing that was found; wanted %q, found:\n%s", statement, rule.promise, found)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}
