//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	_ "modernc.org/sqlite" // reads the file without the store under test
)

// ledger reads the service's file behind its back.
type ledger struct {
	t  *testing.T
	db *sql.DB
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
	if err := l.db.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		l.t.Fatalf("%s: %v", query, err)
	}
	return int(n.Int64)
}

func (l *ledger) text(query string, args ...any) string {
	l.t.Helper()
	var s sql.NullString
	err := l.db.QueryRowContext(context.Background(), query, args...).Scan(&s)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		l.t.Fatalf("%s: %v", query, err)
	}
	return s.String
}

func (l *ledger) claimedAt(id string, version int64) time.Time {
	l.t.Helper()
	return time.UnixMilli(int64(l.count("SELECT started_at FROM attempts WHERE task_id = ? AND version = ?", id, version)))
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

// balance checks what must hold for every task of the file.
func (l *ledger) balance() {
	l.t.Helper()
	for _, rule := range []struct{ promise, violations string }{
		{"a task has at most one response (P3)",
			"SELECT count(*) FROM (SELECT task_id FROM responses GROUP BY task_id HAVING count(*) > 1)"},
		{"a response exists if and only if the task is completed (P4)",
			"SELECT count(*) FROM tasks t LEFT JOIN responses r ON r.task_id = t.id WHERE (t.status = 'completed') <> (r.task_id IS NOT NULL)"},
		{"a completed reply has one assistant message, with the response's text, unless its conversation is gone (P4)",
			`SELECT count(*) FROM tasks t JOIN inputs i ON i.task_id = t.id JOIN responses r ON r.task_id = t.id
			 JOIN conversations c ON c.id = json_extract(i.input, '$.conversation')
			 WHERE t.kind = 'reply' AND (SELECT count(*) FROM messages m WHERE m.task_id = t.id AND m.role = 'assistant'
			   AND m.text = json_extract(r.response, '$.text')) <> 1`},
		{"a task that did not complete has no assistant message (P4)",
			"SELECT count(*) FROM messages m JOIN tasks t ON t.id = m.task_id WHERE m.role = 'assistant' AND t.status <> 'completed'"},
		{"no message without its task (P2)",
			"SELECT count(*) FROM messages m LEFT JOIN tasks t ON t.id = m.task_id WHERE t.id IS NULL"},
		{"calls used are calls recorded (P8)",
			"SELECT count(*) FROM tasks t WHERE t.calls_used <> (SELECT count(*) FROM calls c WHERE c.task_id = t.id)"},
		{"calls and attempts stay within their budgets (P8)",
			"SELECT count(*) FROM tasks WHERE calls_used > calls_max OR attempts_used > attempts_max"},
		{"one count is at most one physical request (P8)",
			"SELECT count(*) FROM calls WHERE requests > 1"},
		{"an ended task has no lease, no open call, no open attempt and no draft",
			`SELECT count(*) FROM tasks t WHERE t.status NOT IN ('queued', 'running') AND (t.open_call <> 0
			   OR EXISTS (SELECT 1 FROM attempts a WHERE a.task_id = t.id AND a.outcome = '')
			   OR EXISTS (SELECT 1 FROM calls c WHERE c.task_id = t.id AND c.closed_at = 0)
			   OR EXISTS (SELECT 1 FROM drafts d WHERE d.task_id = t.id))`},
		{"at most one attempt of a task was accepted (P3)",
			"SELECT count(*) FROM (SELECT task_id FROM attempts WHERE outcome = 'accepted' GROUP BY task_id HAVING count(*) > 1)"},
		{"versions rise by one with every claim (P5)",
			"SELECT count(*) FROM tasks t WHERE t.version < (SELECT coalesce(max(version), 0) FROM attempts a WHERE a.task_id = t.id)"},
		{"foreign keys hold", "SELECT count(*) FROM pragma_foreign_key_check"},
		{"the file is sound", "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"},
	} {
		if n := l.count(rule.violations); n != 0 {
			l.t.Errorf("violated %d times: %s", n, rule.promise)
		}
	}
}
