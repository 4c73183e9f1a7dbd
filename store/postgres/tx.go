package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/onereply/onereply"
)

// driverName names the transactions of this store.
const driverName = "postgres"

// Tx is a transaction of this store: of pgx, or of database/sql over pgx's
// standard library driver.
type Tx struct {
	runner
	pgx pgx.Tx
	sql *sql.Tx
}

// TxDriver implements onereply.Tx.
func (*Tx) TxDriver() string { return driverName }

// Wrap makes a Tx of the caller's own pgx transaction. It should be at READ
// COMMITTED; a stricter one may be told to retry (SQLSTATE 40001), which is the
// caller's to do.
func Wrap(tx pgx.Tx) *Tx { return &Tx{runner: pgxRunner{tx}, pgx: tx} }

// Unwrap gives hooks the pgx transaction. It panics on another store's Tx, and
// on one of database/sql.
func Unwrap(tx onereply.Tx) pgx.Tx {
	if t, ok := tx.(*Tx); ok && t.pgx != nil {
		return t.pgx
	}
	panic(fmt.Sprintf("postgres: Unwrap of a %T that is no pgx transaction", tx))
}

// WrapSQL makes a Tx of the caller's own database/sql transaction, on pgx's
// driver ("pgx").
func WrapSQL(tx *sql.Tx) *Tx { return &Tx{runner: sqlRunner{tx}, sql: tx} }

// UnwrapSQL gives hooks the database/sql transaction of a store made by
// [NewSQL]. It panics on another store's Tx.
func UnwrapSQL(tx onereply.Tx) *sql.Tx {
	if t, ok := tx.(*Tx); ok && t.sql != nil {
		return t.sql
	}
	panic(fmt.Sprintf("postgres: UnwrapSQL of a %T that is no database/sql transaction", tx))
}

// runner runs statements, in a transaction or each alone.
type runner interface {
	// query calls each for every row, with a function that reads its columns.
	query(ctx context.Context, text string, args []any, each func(scan func(...any) error) error) error
	// queryAfter is query behind a statement whose rows nobody reads, in the same
	// round trip where the driver can.
	queryAfter(ctx context.Context, before string, with any, text string, args []any, each func(scan func(...any) error) error) error
}

// database is a pool of either kind.
type database interface {
	runner
	// inTx runs f in a transaction at READ COMMITTED with the settings given.
	inTx(ctx context.Context, settings string, f func(*Tx) error) error
	// session runs f on a connection of its own, which serves nobody afterwards.
	session(ctx context.Context, f func(*pgx.Conn) error) error
}

type pgxQueries interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

type pgxRunner struct{ q pgxQueries }

func (r pgxRunner) query(ctx context.Context, text string, args []any, each func(func(...any) error) error) error {
	rows, err := r.q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	return scanAll(rows, each)
}

func (r pgxRunner) queryAfter(ctx context.Context, before string, with any, text string, args []any, each func(func(...any) error) error) error {
	b := &pgx.Batch{}
	b.Queue(before, with)
	b.Queue(text, args...)
	results := r.q.SendBatch(ctx, b)
	rows, err := results.Query()
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		_ = results.Close() // it says the same again
		return err
	}
	if rows, err = results.Query(); err != nil {
		_ = results.Close() // it says the same again
		return err
	}
	return scanAll(&lastRows{Rows: rows, batch: results}, each)
}

func scanAll(rows pgx.Rows, each func(func(...any) error) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

type pgxPool struct {
	pgxRunner
	pool *pgxpool.Pool
}

func (p pgxPool) inTx(ctx context.Context, settings string, f func(*Tx) error) (err error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return begun(err)
	}
	defer conn.Release()
	tx := &pipelined{conn: conn.Conn(), ctx: ctx}
	if settings != "" {
		tx.settings = strings.Split(settings, "; ")[1:]
	}
	ended := false
	defer func() {
		if !ended { // f failed or panicked
			err = undone(err, tx.Rollback(context.WithoutCancel(ctx)))
		}
	}()
	if err := f(Wrap(tx)); err != nil {
		return err
	}
	ended = true
	// A caller that hangs up now must not leave everybody in doubt.
	calm, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	return committed(ctx, tx.Commit(calm))
}

// commitPatience bounds a commit, which its caller's end does not.
const commitPatience = 30 * time.Second

// undone adds to the cause what went wrong in undoing; where nothing did, the
// cause stays as it is.
func undone(cause, err error) error {
	if err = rolledBack(err); err == nil {
		return cause
	}
	return errors.Join(cause, err)
}

func (p pgxPool) session(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	owned := conn.Hijack()
	return errors.Join(f(owned), closing(ctx, owned))
}

type sqlQueries interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

type sqlRunner struct{ q sqlQueries }

func (r sqlRunner) query(ctx context.Context, text string, args []any, each func(func(...any) error) error) (err error) {
	rows, err := r.q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (r sqlRunner) queryAfter(ctx context.Context, before string, with any, text string, args []any, each func(func(...any) error) error) error {
	if err := r.query(ctx, before, []any{with}, func(func(...any) error) error { return nil }); err != nil {
		return err
	}
	return r.query(ctx, text, args, each)
}

type sqlPool struct {
	sqlRunner
	db *sql.DB
}

func (p sqlPool) session(ctx context.Context, f func(*pgx.Conn) error) (err error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = undone(err, conn.Close()) }()
	return conn.Raw(func(raw any) error {
		own, ok := raw.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("%w: the database was opened with the driver of %T, want pgx", onereply.ErrInvalid, raw)
		}
		// database/sql drops the connection when it finds it closed.
		return errors.Join(f(own.Conn()), closing(ctx, own.Conn()))
	})
}

func (p sqlPool) inTx(ctx context.Context, settings string, f func(*Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The transaction's end is ours: database/sql would roll back on a goroutine of
	// its own when ctx ends, and in the middle of a commit.
	tx, err := p.db.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return begun(err)
	}
	ended := false
	defer func() {
		if !ended {
			err = undone(err, tx.Rollback())
		}
	}()
	if settings != "" {
		if _, err := tx.ExecContext(ctx, settings[1:]); err != nil { // without its leading semicolon
			return err
		}
	}
	if err := f(WrapSQL(tx)); err != nil {
		return err
	}
	ended = true
	return committed(ctx, tx.Commit())
}
