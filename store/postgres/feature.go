package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/tables"
)

// Tables lets the features' tables reach this store's schema.
func (s *Store) Tables() tables.Database {
	d := tables.Database{Schema: s.o.Schema, Now: s.Now, Fault: Fault}
	switch db := s.db.(type) {
	case pgxPool:
		d.Read = querier{db.pool}
		d.Unwrap = func(tx onereply.Tx) tables.Querier { return querier{Unwrap(tx)} }
	case sqlPool:
		d.Read = tables.SQL(db.db)
		d.Unwrap = func(tx onereply.Tx) tables.Querier { return tables.SQL(UnwrapSQL(tx)) }
	}
	return d
}

// Now returns the server's time within a transaction, for rows of the
// application's own. It goes on while the transaction lasts.
func (s *Store) Now(ctx context.Context, tx onereply.Tx) (now time.Time, err error) {
	t, err := of(tx)
	if err != nil {
		return now, err
	}
	err = s.do(ctx, t, "clock", func(scan func(...any) error) error { return scan(&now) })
	return now.UTC(), fault("reading the clock", err)
}

// Fault makes of an error of the database, met while a feature read or wrote
// rows of its own, what the store's own methods would have returned: matching
// onereply.ErrUnavailable where the server cannot be used now. Op says what was
// being done. It gives nil for nil.
func Fault(op string, err error) error { return fault(op, err) }

// querier runs the features' statements on a pool or in a transaction of pgx.
type querier struct {
	q interface {
		Exec(ctx context.Context, text string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	}
}

// Exec implements tables.Querier.
func (q querier) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	tag, err := q.q.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

// Query implements tables.Querier.
func (q querier) Query(ctx context.Context, text string, args ...any) (tables.Rows, error) {
	rows, err := q.q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return closer{rows}, nil
}

// closer gives pgx.Rows the Close of database/sql.
type closer struct{ pgx.Rows }

// Close implements tables.Rows.
func (c closer) Close() error {
	c.Rows.Close()
	return c.Err()
}
