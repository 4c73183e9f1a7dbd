package tables_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/tables"
)

// TestWhatTheDriverSaysBecomesTheStoresError: at every place where a database
// can fail, the caller gets what Fault makes of it, with the statement's name.
func TestWhatTheDriverSaysBecomesTheStoresError(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk is full")
	for name, db := range map[string]broken{
		"the query":     {query: cause},
		"the rows":      {rows: rows{err: cause}},
		"their end":     {rows: rows{closing: cause}},
		"reading a row": {rows: rows{left: 1, scan: cause}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chat, err := tables.NewChat(tables.Database{Read: db, Fault: func(op string, err error) error {
				if err == nil {
					return nil
				}
				return fmt.Errorf("%s: %w: %w", op, onereply.ErrUnavailable, err)
			}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = chat.Messages(t.Context(), scope, "c")
			if !errors.Is(err, onereply.ErrUnavailable) || !errors.Is(err, cause) || err.Error()[:9] != "messages:" {
				t.Errorf("got %v", err)
			}
		})
	}
}

// broken is a database that fails at one place.
type broken struct {
	query error
	rows  rows
}

func (b broken) Exec(context.Context, string, ...any) (int64, error) { return 0, b.query }
func (b broken) Query(context.Context, string, ...any) (tables.Rows, error) {
	if b.query != nil {
		return nil, b.query
	}
	return &b.rows, nil
}

type rows struct {
	left               int
	scan, err, closing error
}

func (r *rows) Next() bool        { r.left--; return r.left >= 0 }
func (r *rows) Scan(...any) error { return r.scan }
func (r *rows) Err() error        { return r.err }
func (r *rows) Close() error      { return r.closing }
