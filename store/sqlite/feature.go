package sqlite

import (
	"context"
	"time"

	"github.com/onereply/onereply"
)

// Now returns the time of an open transaction: the one reading that everything
// written in it is dated with. It takes the write lock if the transaction does
// not hold it yet.
func (s *Store) Now(ctx context.Context, tx onereply.Tx) (time.Time, error) {
	q, err := s.in(ctx, tx)
	if err != nil {
		return time.Time{}, fault("reading the clock", err)
	}
	return moment(q.now), nil
}

// Fault makes of an error of the database, met while a feature read or wrote
// rows of its own, what the store's own methods would have returned: matching
// onereply.ErrUnavailable where the file cannot be used now. Op says what was
// being done. It gives nil for nil.
func Fault(op string, err error) error { return fault(op, err) }
