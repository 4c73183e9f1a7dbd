package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/onereply/onereply"
)

// Driver is the name that TxDriver gives for this store's transactions.
const Driver = "sqlite"

// Tx is an open transaction on the store's file.
type Tx struct {
	tx    *sql.Tx
	owner *Store    // nil: the user's own transaction
	raw   *sql.Conn // the connection under tx, in the store's own transactions
	now   int64     // the clock, read once under the lock; 0: not read yet
}

// TxDriver names this store.
func (*Tx) TxDriver() string { return Driver }

// Wrap passes a transaction of the user's own through the engine. It must be on
// the same file; begin it with [Store.Begin], or with BEGIN IMMEDIATE on a
// connection of your own that has foreign_keys on.
func Wrap(tx *sql.Tx) onereply.Tx { return &Tx{tx: tx} }

// Unwrap gives the transaction that a hook may write its rows with. It panics
// on another store's Tx, which is a programming error. Do not commit it or roll
// it back: it may be shared.
func Unwrap(tx onereply.Tx) *sql.Tx {
	own, ok := tx.(*Tx)
	if !ok {
		panic(fmt.Sprintf("sqlite: Unwrap of a %T (driver %q)", tx, tx.TxDriver()))
	}
	return own.tx
}

// Begin opens a transaction of the caller's own on the store's one writer. It
// holds the write lock from here on, so end it soon: everything else that
// writes waits for it.
func (s *Store) Begin(ctx context.Context) (*sql.Tx, error) {
	if s.closed.Load() {
		return nil, &onereply.Error{Op: "begin", Err: onereply.ErrClosed}
	}
	tx, err := s.writes.BeginTx(ctx, nil)
	if err != nil {
		return nil, fault("begin", err)
	}
	return tx, nil
}

// Reader is a pool of connections that cannot write, for a feature's reads.
func (s *Store) Reader() *sql.DB { return s.reads }

// querier runs the store's statements in one transaction or on one snapshot.
type querier struct {
	s   *Store
	tx  *sql.Tx
	raw *sql.Conn // nil: through tx
	now int64
}

// in returns a querier for a transaction of InTx, Begin or Wrap, with the clock
// read under the lock.
func (s *Store) in(ctx context.Context, tx onereply.Tx) (*querier, error) {
	own, ok := tx.(*Tx)
	if !ok {
		return nil, fmt.Errorf("%w: transaction of driver %q given to store %q", onereply.ErrInvalid, tx.TxDriver(), Driver)
	}
	if own.owner != nil && own.owner != s {
		return nil, fmt.Errorf("%w: transaction of another store", onereply.ErrInvalid)
	}
	q := &querier{s: s, tx: own.tx, raw: own.raw, now: own.now}
	if own.now == 0 {
		if err := q.lockClock(ctx); err != nil {
			return nil, err
		}
		own.now = q.now
	}
	return q, nil
}

// lockClock reads the clock in a transaction that may not hold the lock yet,
// and leaves the mark.
func (q *querier) lockClock(ctx context.Context) error {
	if _, err := q.exec(ctx, "clock_lock"); err != nil {
		return err
	}
	var mark int64
	if _, err := q.each(ctx, "clock_read", func(r row) error { mark = r.integer(0); return nil }); err != nil {
		return err
	}
	q.now = q.s.clock.read(mark)
	_, err := q.exec(ctx, "clock_mark", "now", q.now, "before", -1)
	return err
}

// exec runs a statement that returns no rows and says how many it changed.
func (q *querier) exec(ctx context.Context, name string, args ...any) (int64, error) {
	st, bound, err := q.s.statement(name, args)
	if err != nil {
		return 0, err
	}
	if q.raw != nil {
		return q.direct(ctx, st, bound, nil)
	}
	result, err := q.tx.ExecContext(ctx, st.text, values(bound)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// each runs a statement and gives its rows to scan, which must not keep them.
func (q *querier) each(ctx context.Context, name string, scan func(row) error, args ...any) (n int64, err error) {
	st, bound, err := q.s.statement(name, args)
	if err != nil {
		return 0, err
	}
	if q.raw != nil {
		return q.direct(ctx, st, bound, scan)
	}
	rows, err := q.tx.QueryContext(ctx, st.text, values(bound)...)
	if err != nil {
		return 0, err
	}
	n, err = scanRows(rows, scan)
	return n, errors.Join(err, rows.Close())
}

// direct runs a statement on the connection itself, which costs half of what
// the way through database/sql does. Raw holds the connection's lock meanwhile:
// database/sql closes the rows of a context that ends on a goroutine of its own.
func (q *querier) direct(ctx context.Context, st *statement, bound []driver.NamedValue, scan func(row) error) (n int64, err error) {
	err = q.raw.Raw(func(raw any) error {
		c, ok := raw.(*conn)
		if !ok {
			return fmt.Errorf("connection is a %T", raw)
		}
		n, err = c.run(ctx, st, bound, scan)
		return err
	})
	return n, err
}

func scanRows(rows *sql.Rows, scan func(row) error) (n int64, err error) {
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	dest, targets := make(row, len(columns)), make([]any, len(columns))
	for i := range dest {
		targets[i] = (*any)(nil)
	}
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			targets[i] = &cells[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return n, err
		}
		for i, v := range cells {
			dest[i] = v
		}
		n++
		if err := scan(dest); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

func values(bound []driver.NamedValue) []any {
	args := make([]any, len(bound))
	for i, b := range bound {
		args[i] = b.Value
	}
	return args
}

func (s *Store) statement(name string, args []any) (*statement, []driver.NamedValue, error) {
	st := s.statements[name]
	if st == nil {
		return nil, nil, fmt.Errorf("no statement %q", name)
	}
	bound, err := st.bind(args)
	return st, bound, err
}
