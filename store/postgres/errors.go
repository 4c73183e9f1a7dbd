package postgres

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onereply/onereply"
)

// state returns the SQLSTATE that the server gave, if it was the server that spoke.
func state(err error) (string, bool) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return "", false
	}
	return e.Code, true
}

// mayRetry reports whether the whole transaction is to be run again: a deadlock,
// or a serialization failure.
func mayRetry(err error) bool {
	code, ok := state(err)
	return ok && (code == "40P01" || code == "40001")
}

// lockNotAvailable is what the server says after lock_timeout.
const lockNotAvailable = "55P03"

// advice says, by SQLSTATE or its class, what an operator may do where the server
// cannot be used now.
var advice = map[string]string{
	"08":    "the connection broke; the server may be restarting",
	"57P01": "the server is shutting down or ended this connection",
	"57P02": "the server is recovering from a crash",
	"57P03": "the server is starting up",
	"57P05": "the server ended an idle connection",
	"25P03": "a transaction was idle for longer than the server allows",
	"53":    "the server is out of connections, memory or disk",
	"58":    "the server's operating system refused to read or write",
	"55P03": "another transaction holds the row; a submission in a long transaction of the program, perhaps",
	"25006": "the server is read-only: a standby, or a primary that was demoted",
}

func unavailability(err error) (string, bool) {
	code, ok := state(err)
	if !ok {
		return "", false
	}
	if hint, ok := advice[code]; ok {
		return hint, true
	}
	hint, ok := advice[code[:2]]
	return hint, ok
}

// fault makes an operator's error of what the database said. It keeps the causes
// that a caller decides by as they are.
func fault(op string, err error) error {
	var known *onereply.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, onereply.ErrInvalid), errors.Is(err, onereply.ErrUnavailable), errors.Is(err, onereply.ErrClosed):
		return err
	case isBadValue(err):
		return &onereply.Error{Op: op, Err: fmt.Errorf("%w: %w", onereply.ErrInvalid, err)}
	case mayRetry(err):
		return &onereply.Error{Op: op, Err: err, Hint: "retry your transaction"}
	}
	if hint, ok := unavailability(err); ok {
		return unavailable(op, err, hint)
	}
	if _, spoke := state(err); spoke || errors.Is(err, pgx.ErrNoRows) {
		return &onereply.Error{Op: op, Err: err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if isClosed(err) {
		return &onereply.Error{Op: op, Err: fmt.Errorf("%w: %w", onereply.ErrClosed, err)}
	}
	var lost interface{ SafeToRetry() bool }
	if refusedToConnect(err) || errors.As(err, &lost) || isNetwork(err) {
		return unavailable(op, err, "the server cannot be reached; check the address and that it runs")
	}
	return &onereply.Error{Op: op, Err: err}
}

func unavailable(op string, cause error, hint string) error {
	return &onereply.Error{Op: op, Err: fmt.Errorf("%w: %w", onereply.ErrUnavailable, cause), Hint: hint}
}

// begun marks a failure to begin: nothing happened.
func begun(err error) error {
	if _, spoke := state(err); spoke || errors.Is(err, context.Canceled) {
		return err
	}
	return unavailable("begin", err, "the server cannot be reached, or every connection of the pool is in use")
}

// rolledBack drops what says only that there is nothing left to roll back.
func rolledBack(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, sql.ErrTxDone) || isNetwork(err) {
		return nil
	}
	return err
}

// isNetwork reports whether the connection failed, rather than the statement.
func isNetwork(err error) bool {
	if err == nil {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "conn closed") || errors.Is(err, sqldriver.ErrBadConn)
}

// isClosed reports whether the pool was closed.
func isClosed(err error) bool {
	return errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "closed pool") || strings.Contains(err.Error(), "database is closed")
}

// refusedToConnect reports whether no connection could be made.
func refusedToConnect(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
}

// isBadValue reports whether the server refused a value: text that no column of
// text can hold, a number out of range, or the id of a task that is there
// already.
func isBadValue(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	taken := e.Code == "23505" && (e.ConstraintName == "tasks_pkey" || e.ConstraintName == "inputs_pkey")
	return taken || strings.HasPrefix(e.Code, "22")
}
