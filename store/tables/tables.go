// Package tables keeps the features' rows: plain SQL, written once for every
// database that knows `$n` parameters, RETURNING and integer times, over the two
// methods of [Querier].
//
// What a task does is in the engine's store and guarded there; what is here runs
// in the same transactions, through the hooks of the features, and carries no
// guard of its own. Each statement is a file of sql/ that names what it promises.
// Start reading at chat.go.
package tables

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/onereply/onereply"
)

// Querier runs statements: a pool of connections, or a transaction.
type Querier interface {
	// Exec runs a statement and returns how many rows it touched.
	Exec(ctx context.Context, text string, args ...any) (int64, error)
	// Query runs a statement that gives rows.
	Query(ctx context.Context, text string, args ...any) (Rows, error)
}

// Rows is a result. *sql.Rows is one.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Database is how the tables reach a store.
type Database struct {
	// Schema is where the tables are; empty: where the database looks by itself.
	Schema string
	// Read runs queries outside transactions.
	Read Querier
	// Unwrap gives the transaction that hooks are passed.
	Unwrap func(onereply.Tx) Querier
	// Now is a transaction's time by the store's clock.
	Now func(context.Context, onereply.Tx) (time.Time, error)
	// Fault makes the store's error of what the driver said while op was being
	// done: matching onereply.ErrUnavailable where the database cannot be used now.
	Fault func(op string, err error) error
}

// SQL makes a Querier of what database/sql has: a *sql.DB, *sql.Tx or *sql.Conn.
func SQL(q interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) Querier {
	return standard{q}
}

type standard struct {
	q interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
}

func (s standard) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	result, err := s.q.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s standard) Query(ctx context.Context, text string, args ...any) (Rows, error) {
	return s.q.QueryContext(ctx, text, args...) //nolint:rowserrcheck // handed to the caller, who checks
}

//go:embed sql/*/*.sql
var files embed.FS

// statements are the texts of one feature's folder of sql/ by their names,
// without comments, and how to tell what went wrong with one.
type statements struct {
	texts map[string]string
	fault func(op string, err error) error
}

// load reads a feature's statements, with its tables named in their schema.
func load(db Database, feature string, tables ...string) (statements, error) {
	s := statements{texts: map[string]string{}, fault: db.Fault}
	word := regexp.MustCompile(`\b(` + strings.Join(tables, "|") + `)\b`)
	names, err := fs.Glob(files, "sql/"+feature+"/*.sql")
	if err != nil {
		return s, fmt.Errorf("listing statements: %w", err)
	}
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return s, fmt.Errorf("reading statement %s: %w", name, err)
		}
		var text strings.Builder
		for line := range strings.Lines(string(raw)) {
			if !strings.HasPrefix(line, "--") {
				text.WriteString(line)
			}
		}
		whole := strings.TrimSpace(text.String())
		if db.Schema != "" {
			whole = word.ReplaceAllString(whole, db.Schema+".$1")
		}
		s.texts[strings.TrimSuffix(path.Base(name), ".sql")] = whole
	}
	return s, nil
}

// exec runs the named statement.
func (s statements) exec(ctx context.Context, q Querier, name string, args ...any) (int64, error) {
	n, err := q.Exec(ctx, s.texts[name], args...)
	return n, s.fault(name, err)
}

// query runs the named statement and gives each row to scan.
func (s statements) query(ctx context.Context, q Querier, scan func(Rows) error, name string, args ...any) error {
	rows, err := q.Query(ctx, s.texts[name], args...)
	if err != nil {
		return s.fault(name, err)
	}
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.fault(name, errors.Join(err, rows.Close()))
		}
	}
	return s.fault(name, errors.Join(rows.Err(), rows.Close()))
}
