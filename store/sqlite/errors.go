package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	moderncsqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/onereply/onereply"
)

// resultCode returns SQLite's primary result code.
func resultCode(err error) (int, bool) {
	var e *moderncsqlite.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Code() & 0xff, true
}

// isBusy reports whether another connection holds the lock just now. A read
// transaction that has fallen behind (BUSY_SNAPSHOT) is not that: waiting does
// not help it.
func isBusy(err error) bool {
	var e *moderncsqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY && e.Code() != sqlite3.SQLITE_BUSY_SNAPSHOT
}

// unavailability says, of the codes that mean the file cannot be used now, what
// an operator may do about it.
func unavailability(code int) (hint string, ok bool) {
	switch code {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the file's write lock; end it or wait", true
	case sqlite3.SQLITE_FULL:
		return "the disk, or the file's page limit, is full; make room", true
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return "the file and its directory must be writable: SQLite keeps a -wal and a -shm file beside it", true
	case sqlite3.SQLITE_CANTOPEN:
		return "check that the directory exists and that this user may write to it", true
	case sqlite3.SQLITE_NOTADB:
		return "the file is no SQLite database; name another one, or restore a backup", true
	case sqlite3.SQLITE_CORRUPT:
		return "the file is damaged; restore a backup, or try sqlite3 FILE .recover", true
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL:
		return "the operating system refused to read or write the file; see its log", true
	case sqlite3.SQLITE_NOMEM:
		return "this process is out of memory", true
	}
	return "", false
}

// fault makes an operator's error of what the database said. It keeps the
// causes that a caller decides by as they are.
func fault(op string, err error) error {
	var known *onereply.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, onereply.ErrInvalid), errors.Is(err, onereply.ErrUnavailable), errors.Is(err, onereply.ErrClosed):
		return err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		hint, _ := unavailability(sqlite3.SQLITE_CANTOPEN)
		return unavailable(op, err, hint)
	case errors.Is(err, sql.ErrConnDone):
		return &onereply.Error{Op: op, Err: onereply.ErrClosed}
	}
	if code, ok := resultCode(err); ok {
		if hint, ok := unavailability(code); ok {
			return unavailable(op, err, hint)
		}
	}
	return &onereply.Error{Op: op, Err: err}
}

func unavailable(op string, cause error, hint string) error {
	return &onereply.Error{Op: op, Err: fmt.Errorf("%w: %w", onereply.ErrUnavailable, cause), Hint: hint}
}

// commitUnknown is the error of a commit whose outcome cannot be told (P11).
func commitUnknown(cause error) error {
	return &onereply.Error{
		Op:   "commit",
		Err:  fmt.Errorf("%w: %w: %w", onereply.ErrCommitUnknown, onereply.ErrUnavailable, cause),
		Hint: "read the task before doing anything again",
	}
}

// commitFault tells a commit that certainly did not happen from one that may have.
func commitFault(err error) error {
	if code, ok := resultCode(err); ok {
		switch code {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CONSTRAINT:
			// Refused before the commit record was written, and rolled back by the driver.
			return fault("commit", err)
		}
	}
	return commitUnknown(err)
}

func isConstraint(err error) bool {
	code, ok := resultCode(err)
	return ok && code == sqlite3.SQLITE_CONSTRAINT
}
