package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"runtime"
	"time"

	"github.com/onereply/onereply"
	_ "modernc.org/sqlite" // the same driver without anything of ours between
)

// ids mints the ids of the plain side, as the product mints its own.
var ids = onereply.NewIDs()

// plainDB opens a file with the product's schema and settings, and gives its one
// connection: prepared statements on it run without any search for one.
func plainDB(ctx context.Context, path string) (*sql.Conn, error) {
	s, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)&_pragma=cache_size(-8000)&_pragma=temp_store(MEMORY)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db.Conn(ctx)
}

func inTx(ctx context.Context, db *sql.Conn, f func() error) error {
	if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := f(); err != nil {
		_, undone := db.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, undone)
	}
	_, err := db.ExecContext(ctx, "COMMIT")
	return err
}

// gather takes what waits beside the first.
func gather(first plainRow, waiting <-chan plainRow) []plainRow {
	for range 3 {
		runtime.Gosched()
	}
	group := []plainRow{first}
	for len(group) < 128 {
		select {
		case row, ok := <-waiting:
			if !ok {
				return group
			}
			group = append(group, row)
		default:
			return group
		}
	}
	return group
}

// plain are the statements of the plain side, prepared once.
type plain struct {
	key, task, input, note              *sql.Stmt
	claim, attempt                      *sql.Stmt
	accept, response, accepted, findDue *sql.Stmt
	text                                string
}

func prepare(ctx context.Context, db *sql.Conn) (p plain, err error) {
	raw, err := json.Marshal(ask{Text: sentence})
	if err != nil {
		return p, err
	}
	p.text = string(raw)
	for _, s := range []struct {
		at   **sql.Stmt
		text string
	}{
		{&p.key, `INSERT INTO submissions (scope, action, key, fingerprint, task_id, created_at, expires_at) VALUES ('bench', 'note', ?, ?, ?, ?, ?)`},
		{&p.task, `INSERT INTO tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max, elapsed_max, elapsed_from, on_unknown, acceptance)
			VALUES (?, 'note', 'bench', 'queued', ?, ?, 5, 3, 900000, ?, 'retry', 'current-assignment')`},
		{&p.input, `INSERT INTO inputs (task_id, action, key, input) VALUES (?, 'note', ?, ?)`},
		{&p.note, insertNote},
		{&p.claim, `UPDATE tasks SET version = version + 1, attempt = ?, worker = 'plain', status = 'running', lease_until = ?, attempts_used = attempts_used + 1 WHERE id = ?`},
		{&p.attempt, `INSERT INTO attempts (task_id, version, attempt, worker, started_at) VALUES (?, 1, ?, 'plain', ?)`},
		{&p.accept, `UPDATE tasks SET status = 'completed', lease_until = 0, ended_at = ? WHERE id = ?`},
		{&p.response, `INSERT INTO responses (task_id, version, attempt, response, accepted_at) VALUES (?, 1, ?, ?, ?)`},
		{&p.accepted, `UPDATE attempts SET outcome = 'accepted', ended_at = ? WHERE task_id = ? AND version = 1`},
		{&p.findDue, `SELECT t.id, i.input FROM tasks t JOIN inputs i ON i.task_id = t.id WHERE t.kind = 'note' AND t.status = 'queued' AND t.run_at <= ? ORDER BY t.run_at LIMIT 50`},
	} {
		if *s.at, err = db.PrepareContext(ctx, s.text); err != nil {
			return p, err
		}
	}
	return p, nil
}

type bound struct {
	statement *sql.Stmt
	args      []any
}

func execAll(ctx context.Context, all ...bound) error {
	for _, b := range all {
		if _, err := b.statement.ExecContext(ctx, b.args...); err != nil {
			return err
		}
	}
	return nil
}

func (p plain) submit(ctx context.Context, id onereply.TaskID, key string, note bool) error {
	now := time.Now().UnixMilli()
	print := onereply.Fingerprint("note", []byte(p.text))
	rows := []bound{
		{p.key, []any{key, print, string(id), now, now + 604800000}},
		{p.task, []any{string(id), now, now, now}},
		{p.input, []any{string(id), key, p.text}},
	}
	if note {
		rows = append(rows, bound{p.note, []any{string(id), "user", sentence}})
	}
	return execAll(ctx, rows...)
}

// group takes n tasks through their life in three transactions.
func (p plain) group(ctx context.Context, db *sql.Conn, n int) error {
	err := inTx(ctx, db, func() error {
		for range n {
			id := ids.New()
			if err := p.submit(ctx, onereply.TaskID(id), id, false); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	attempts := map[string]string{}
	err = inTx(ctx, db, func() error {
		now := time.Now().UnixMilli()
		found, err := p.due(ctx, now)
		if err != nil {
			return err
		}
		for _, id := range found {
			attempts[id] = ids.New()
			if err := execAll(ctx, bound{p.claim, []any{attempts[id], now + 30000, id}}, bound{p.attempt, []any{id, attempts[id], now}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return inTx(ctx, db, func() error {
		now := time.Now().UnixMilli()
		for id, attempt := range attempts {
			err := execAll(ctx,
				bound{p.accept, []any{now, id}}, bound{p.response, []any{id, attempt, p.text, now}},
				bound{p.accepted, []any{now, id}}, bound{p.note, []any{id, "assistant", sentence}})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (p plain) due(ctx context.Context, now int64) (found []string, err error) {
	rows, err := p.findDue.QueryContext(ctx, now)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, input string
		if err := rows.Scan(&id, &input); err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	return found, rows.Err()
}
