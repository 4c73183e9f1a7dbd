package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipelined is a transaction of pgx that begins with its first statement, in the
// same round trip: on a busy machine a round trip costs more than a small
// statement. It is one goroutine's, as every transaction of pgx.
type pipelined struct {
	conn     *pgx.Conn
	settings []string        // statements that follow BEGIN
	ctx      context.Context // for LargeObjects alone, which takes none
	tx       pgx.Tx          // nil until it has begun
	over     bool
}

var _ pgx.Tx = (*pipelined)(nil)

// first sends what begins the transaction with the batch behind it, and reads the
// answers to what began it.
func (t *pipelined) first(ctx context.Context, rest *pgx.Batch) (pgx.BatchResults, error) {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	for _, s := range t.settings {
		b.Queue(s)
	}
	b.QueuedQueries = append(b.QueuedQueries, rest.QueuedQueries...)
	r := t.conn.SendBatch(ctx, b)
	t.tx = r.Tx()
	for range 1 + len(t.settings) {
		if _, err := r.Exec(); err != nil {
			_ = r.Close() // it says the same again
			return nil, begun(err)
		}
	}
	return r, nil
}

// single is a batch of one statement.
func single(text string, args []any) *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(text, args...)
	return b
}

// open begins the transaction by itself, for what cannot travel with it.
func (t *pipelined) open(ctx context.Context) (pgx.Tx, error) {
	if t.over {
		return nil, pgx.ErrTxClosed
	}
	if t.tx != nil {
		return t.tx, nil
	}
	r, err := t.first(ctx, &pgx.Batch{})
	if err != nil {
		return nil, err
	}
	return t.tx, r.Close()
}

// Exec implements pgx.Tx.
func (t *pipelined) Exec(ctx context.Context, text string, args ...any) (tag pgconn.CommandTag, err error) {
	if len(args) == 0 || t.tx != nil || t.over { // without arguments it may be several statements, which no batch holds
		tx, err := t.open(ctx)
		if err != nil {
			return tag, err
		}
		return tx.Exec(ctx, text, args...)
	}
	r, err := t.first(ctx, single(text, args))
	if err != nil {
		return tag, err
	}
	tag, err = r.Exec()
	if closed := r.Close(); err == nil {
		err = closed
	}
	return tag, err
}

// Query implements pgx.Tx.
func (t *pipelined) Query(ctx context.Context, text string, args ...any) (pgx.Rows, error) {
	if t.tx != nil || t.over {
		tx, err := t.open(ctx)
		if err != nil {
			return nil, err
		}
		return tx.Query(ctx, text, args...)
	}
	r, err := t.first(ctx, single(text, args))
	if err != nil {
		return nil, err
	}
	rows, err := r.Query()
	if err != nil {
		_ = r.Close() // it says the same again
		return nil, err
	}
	return &lastRows{Rows: rows, batch: r}, nil
}

// QueryRow implements pgx.Tx.
func (t *pipelined) QueryRow(ctx context.Context, text string, args ...any) pgx.Row {
	tx, err := t.open(ctx)
	if err != nil {
		return noRow{err}
	}
	return tx.QueryRow(ctx, text, args...)
}

// SendBatch implements pgx.Tx.
func (t *pipelined) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.tx != nil || t.over {
		tx, err := t.open(ctx)
		if err != nil {
			return pgx.FailedBatchResults(b, err)
		}
		return tx.SendBatch(ctx, b)
	}
	r, err := t.first(ctx, b)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return r
}

// CopyFrom implements pgx.Tx.
func (t *pipelined) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	tx, err := t.open(ctx)
	if err != nil {
		return 0, err
	}
	return tx.CopyFrom(ctx, table, columns, rows)
}

// Prepare implements pgx.Tx.
func (t *pipelined) Prepare(ctx context.Context, name, text string) (*pgconn.StatementDescription, error) {
	tx, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	return tx.Prepare(ctx, name, text)
}

// Begin implements pgx.Tx: a savepoint.
func (t *pipelined) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	return tx.Begin(ctx)
}

// LargeObjects implements pgx.Tx.
func (t *pipelined) LargeObjects() pgx.LargeObjects {
	tx, err := t.open(t.ctx)
	if err != nil {
		panic(fmt.Sprintf("postgres: large objects of a transaction that cannot be used: %v", err))
	}
	return tx.LargeObjects()
}

// Conn implements pgx.Tx.
func (t *pipelined) Conn() *pgx.Conn { return t.conn }

// Commit implements pgx.Tx. A transaction without a statement begins and ends at
// once, so that a server that is away is noticed.
func (t *pipelined) Commit(ctx context.Context) error {
	tx, err := t.open(ctx)
	if err != nil {
		return err
	}
	t.over = true
	return tx.Commit(ctx)
}

// Rollback implements pgx.Tx.
func (t *pipelined) Rollback(ctx context.Context) error {
	if t.over {
		return pgx.ErrTxClosed
	}
	t.over = true
	if t.tx == nil {
		return nil
	}
	return t.tx.Rollback(ctx)
}

// lastRows are the rows of a batch's last statement; the batch ends with them.
type lastRows struct {
	pgx.Rows
	batch pgx.BatchResults
	err   error
	ended bool
}

// Next implements pgx.Rows.
func (r *lastRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close implements pgx.Rows.
func (r *lastRows) Close() {
	if r.ended {
		return
	}
	r.ended = true
	r.Rows.Close()
	r.err = r.batch.Close()
}

// Err implements pgx.Rows.
func (r *lastRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// noRow is the row of a transaction that could not begin.
type noRow struct{ err error }

// Scan implements pgx.Row.
func (r noRow) Scan(...any) error { return r.err }
