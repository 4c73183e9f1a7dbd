package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// group runs one shared transaction.
func (w *writer) group() {
	ctx, cancel := context.WithTimeout(w.base, w.s.options.BusyTimeout)
	conn, err := w.s.writes.Conn(ctx)
	cancel()
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = unavailable("begin", err, "a transaction of this program has held the writer all the time")
		}
		w.refuse(fault("begin", err))
		return
	}
	members, outcome := w.shared(conn)
	if err := w.sync(conn, false); err != nil {
		// A connection of unknown durability must not serve anyone else.
		err = errors.Join(err, discard(conn))
		w.relaxed = false
		w.s.options.Logger.Error("restoring synchronous=FULL", "error", err)
	}
	// The connection goes back before anyone is told, so that what they do next
	// finds it free.
	if err := conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) && outcome == nil {
		w.s.options.Logger.Error("returning the writer's connection", "error", err)
	}
	if outcome == nil && len(members) > 0 {
		w.s.announce()
	}
	tell(members, outcome)
}

// sync sets how commits of the connection wait for the disk.
func (w *writer) sync(conn *sql.Conn, relaxed bool) error {
	if w.relaxed == relaxed {
		return nil
	}
	mode := "PRAGMA synchronous = FULL"
	if relaxed {
		mode = "PRAGMA synchronous = NORMAL"
	}
	if _, err := conn.ExecContext(w.base, mode); err != nil {
		return err
	}
	w.relaxed = relaxed
	return nil
}

// shared begins, gives the members their turns and commits. It returns those
// who are to hear the outcome; the others have had theirs.
func (w *writer) shared(conn *sql.Conn) ([]*member, error) {
	relaxed := w.onlyDrafts()
	if err := w.sync(conn, relaxed); err != nil {
		w.refuse(fault("begin", err))
		return nil, nil
	}
	tx, err := conn.BeginTx(w.base, nil)
	if err != nil {
		w.refuse(fault("begin", err))
		return nil, nil
	}
	members := w.collect(relaxed)
	if len(members) == 0 { // all hung up
		return nil, fault("rollback", tx.Rollback())
	}
	own, before, err := w.open(conn, tx)
	if err != nil {
		return members, fault("begin", errors.Join(err, tx.Rollback()))
	}
	q := &querier{s: w.s, tx: tx, raw: own.raw, now: own.now}
	kept, err := w.turns(q, own, members)
	var turned int64
	if err == nil {
		turned, err = q.exec(w.base, "clock_mark", "now", own.now, "before", before)
	}
	if err == nil {
		err = w.s.options.Faults.beforeCommit()
	}
	if err != nil {
		return kept, fault("shared transaction", errors.Join(err, undo(tx)))
	}
	if err := tx.Commit(); err != nil {
		return kept, commitFault(err)
	}
	w.seen += turned
	if err := w.s.options.Faults.afterCommit(); err != nil {
		return kept, commitUnknown(err)
	}
	return kept, nil
}

// undo rolls back what may have been rolled back already: by SQLite itself,
// which does so by its own choice when it runs out of room.
func undo(tx *sql.Tx) error {
	err := tx.Rollback()
	if _, ok := resultCode(err); ok || errors.Is(err, sql.ErrTxDone) {
		return nil // no transaction is active
	}
	return err
}

// open reads the clock under the lock.
func (w *writer) open(c *sql.Conn, tx *sql.Tx) (own *Tx, before int64, err error) {
	own = &Tx{tx: tx, owner: w.s, raw: c}
	q := &querier{s: w.s, tx: tx, raw: own.raw}
	var mark int64
	_, err = q.each(w.base, "clock_read", func(r row) error {
		mark, before = r.integer(0), r.integer(2)
		if turns := r.integer(1); turns != w.seen {
			if w.seen != 0 {
				w.sharedSeen = time.Now() // someone else has written since our last turn
			}
			w.seen = turns
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	own.now = w.s.clock.read(mark)
	return own, before, nil
}

// turns lets each member run within a savepoint and returns those whose writes
// were kept. An error means that the transaction is lost as a whole: those who
// ran are told by the caller, the rest goes back into the queue.
func (w *writer) turns(q *querier, own *Tx, members []*member) (kept []*member, err error) {
	for i, m := range members {
		if _, err := q.exec(w.base, "savepoint_open"); err != nil {
			return append(kept, members[i:]...), err
		}
		m.turn <- own
		said := <-m.ran
		if said == nil {
			kept = append(kept, m)
			_, err = q.exec(w.base, "savepoint_keep")
		} else {
			_, err = q.exec(w.base, "savepoint_undo")
			if err == nil {
				_, err = q.exec(w.base, "savepoint_keep")
			}
		}
		if err != nil {
			w.requeue(members[i+1:])
			if said != nil && !errors.Is(said, errPanicked) {
				err = fmt.Errorf("a neighbour in the shared transaction made the database undo all of it: %w", said)
			}
			return kept, unavailable("shared transaction", err, "try again")
		}
	}
	return kept, nil
}

// requeue puts members that had no turn back to the front.
func (w *writer) requeue(members []*member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(append([]*member(nil), members...), w.waiting...)
}

// discard closes the physical connection under conn instead of pooling it.
func discard(conn *sql.Conn) error {
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) {
		return nil
	}
	return err
}
