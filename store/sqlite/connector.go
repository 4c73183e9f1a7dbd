package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	moderncsqlite "modernc.org/sqlite"
)

// connector opens the physical connections of one pool. It stands between
// database/sql and the driver for three reasons:
//
//   - a statement is never interrupted half-way. SQLite answers an interrupt
//     inside a transaction by rolling all of it back, which would undo the
//     neighbours that share the commit. A context that has ended refuses the
//     next statement instead;
//   - SQLITE_BUSY is waited for here, on Go's timers, because the driver's own
//     wait is real time and would not run in a testing/synctest bubble;
//   - statements are prepared once a connection, whoever runs them.
type connector struct {
	driver.Connector
	setup    []string // run on each new connection
	patience time.Duration
	onBusy   func()
}

// newConnector opens path with the given pragmas. Immediate makes every BEGIN
// take the write lock.
func newConnector(path string, immediate bool, patience time.Duration, onBusy func(), setup ...string) (*connector, error) {
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	dsn := strings.Replace(name.String(), "file:///", "file:/", 1)
	if !filepath.IsAbs(path) {
		dsn = "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	}
	dsn += "?_error_rc=1"
	if immediate {
		dsn += "&_txlock=immediate"
	}
	base, err := moderncsqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return &connector{Connector: base, setup: setup, patience: patience, onBusy: onBusy}, nil
}

// driverConn is all that a connection of the driver can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// Connect opens one connection and sets it up.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := inner.(driverConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("driver connection %T lacks context methods", inner), inner.Close())
	}
	opened := &conn{driverConn: full, owner: c, prepared: map[string]*cachedStmt{}}
	for _, statement := range c.setup {
		if _, err := opened.ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", statement, err), inner.Close())
		}
	}
	return opened, nil
}

// conn is one connection. Like every driver.Conn it serves one goroutine at a time.
type conn struct {
	driverConn
	owner    *connector
	prepared map[string]*cachedStmt
}

// maxPrepared bounds the statements a connection keeps prepared; beyond it,
// texts are prepared each time.
const maxPrepared = 256

type cachedStmt struct {
	stmt driver.Stmt
	busy bool // its rows are being read
}

// patiently repeats op while the file is locked by another connection, about
// every millisecond, until ctx ends or the patience is used up.
func (c *conn) patiently(ctx context.Context, op func() error) error {
	err := op()
	if !isBusy(err) {
		return err
	}
	c.owner.onBusy()
	for start := time.Now(); isBusy(err) && time.Since(start) < c.owner.patience; err = op() {
		timer := time.NewTimer(500*time.Microsecond + rand.N(time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	return err
}

// BeginTx begins a transaction; of the writer's connections with the write lock.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (tx driver.Tx, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	calm := context.WithoutCancel(ctx)
	err = c.patiently(ctx, func() (err error) {
		tx, err = c.driverConn.BeginTx(calm, o)
		return err
	})
	return tx, err
}

// PrepareContext prepares a statement whose executions are not interrupted.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var st driver.Stmt
	calm := context.WithoutCancel(ctx)
	err := c.patiently(ctx, func() (err error) {
		st, err = c.driverConn.PrepareContext(calm, text)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &stmt{Stmt: st, c: c}, nil
}

// ExecContext runs a statement to its end.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (result driver.Result, err error) {
	st, done, err := c.lookup(ctx, text)
	if err != nil {
		return nil, err
	}
	defer done()
	if st == nil { // a script, or a text not worth keeping
		calm := context.WithoutCancel(ctx)
		err = c.patiently(ctx, func() (err error) {
			result, err = c.driverConn.ExecContext(calm, text, args)
			return err
		})
		return result, err
	}
	return c.exec(ctx, st, args)
}

// QueryContext runs a query; its statement is the query's own until the rows are closed.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	st, done, err := c.lookup(ctx, text)
	if err != nil {
		return nil, err
	}
	var rows driver.Rows
	calm := context.WithoutCancel(ctx)
	err = c.patiently(ctx, func() (err error) {
		if st == nil {
			rows, err = c.driverConn.QueryContext(calm, text, args)
		} else {
			rows, err = st.(driver.StmtQueryContext).QueryContext(calm, args)
		}
		return err
	})
	if err != nil {
		done()
		return nil, err
	}
	return &heldRows{Rows: rows, done: done}, nil
}

// lookup returns the prepared form of a text and holds it until done is
// called; nil where it is in use, or must not be kept.
func (c *conn) lookup(ctx context.Context, text string) (driver.Stmt, func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	cached := c.prepared[text]
	if cached == nil && len(c.prepared) < maxPrepared && worthKeeping(text) {
		st, err := c.PrepareContext(ctx, text)
		if err != nil {
			return nil, nil, err
		}
		cached = &cachedStmt{stmt: st.(*stmt).Stmt}
		c.prepared[text] = cached
	}
	if cached == nil || cached.busy {
		return nil, func() {}, nil
	}
	cached.busy = true
	return cached.stmt, func() { cached.busy = false }, nil
}

// worthKeeping reports whether a text is a statement that is likely to come
// again: scripts, pragmas and schema changes are not.
func worthKeeping(text string) bool {
	if strings.Contains(text, ";") {
		return false
	}
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToUpper(strings.TrimSpace(word)) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "SAVEPOINT", "RELEASE", "ROLLBACK":
		return true
	}
	return false
}

func (c *conn) exec(ctx context.Context, st driver.Stmt, args []driver.NamedValue) (result driver.Result, err error) {
	calm := context.WithoutCancel(ctx)
	err = c.patiently(ctx, func() (err error) {
		result, err = st.(driver.StmtExecContext).ExecContext(calm, args)
		return err
	})
	return result, err
}

// Close closes the prepared statements and the connection.
func (c *conn) Close() error {
	var faults []error
	for _, cached := range c.prepared {
		faults = append(faults, cached.stmt.Close())
	}
	return errors.Join(append(faults, c.driverConn.Close())...)
}

// Unwrap gives the driver's own connection, as the driver asks of wrappers.
func (c *conn) Unwrap() driver.Conn { return c.driverConn }

// stmt is a prepared statement that is not interrupted.
type stmt struct {
	driver.Stmt
	c *conn
}

// ExecContext runs the statement to its end.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.c.exec(ctx, s.Stmt, args)
}

// QueryContext runs the query.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	calm := context.WithoutCancel(ctx)
	err = s.c.patiently(ctx, func() (err error) {
		rows, err = s.Stmt.(driver.StmtQueryContext).QueryContext(calm, args)
		return err
	})
	return rows, err
}

// heldRows gives the statement back once its rows are closed.
type heldRows struct {
	driver.Rows
	done func()
}

func (r *heldRows) Close() error {
	defer r.done()
	return r.Rows.Close()
}

// run executes one of the store's own statements on the connection itself,
// without database/sql between, and gives each row to scan. The row is scan's
// to keep until it returns. A nil scan expects none.
func (c *conn) run(ctx context.Context, st *statement, args []driver.NamedValue, scan func(row) error) (int64, error) {
	if scan == nil {
		result, err := c.ExecContext(ctx, st.text, args)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	rows, err := c.QueryContext(ctx, st.text, args)
	if err != nil {
		return 0, err
	}
	n, err := scanAll(rows, scan)
	return n, errors.Join(err, rows.Close())
}

func scanAll(rows driver.Rows, scan func(row) error) (n int64, err error) {
	dest := make(row, len(rows.Columns()))
	for {
		if err := rows.Next(dest); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
		if err := scan(dest); err != nil {
			return n, err
		}
	}
}
