package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onereply/onereply"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migration is one step of the schema, forward only.
type Migration struct {
	Version   int
	Name      string    // such as "0001_engine"
	SQL       string    // the script
	AppliedAt time.Time // zero: not applied
}

func loadMigrations() ([]Migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("listing migrations: %w", err)
	}
	slices.Sort(files)
	var all []Migration
	for i, file := range files {
		raw, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading migration %s: %w", file, err)
		}
		name := strings.TrimSuffix(path.Base(file), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want number %04d", name, i+1)
		}
		all = append(all, Migration{Version: version, Name: name, SQL: string(raw)})
	}
	return all, nil
}

// MigrationSQL returns the whole schema as one script, for those who apply it
// by hand or want to read it. It needs no database.
func MigrationSQL() (string, error) {
	migrations, err := loadMigrations()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, m := range migrations {
		fmt.Fprintf(&b, "-- %s\n%s\n", m.Name, strings.TrimSpace(m.SQL))
	}
	return b.String(), nil
}

// MigrationStatus returns the migrations this program knows, with the time
// each was applied.
func (s *Store) MigrationStatus(ctx context.Context) ([]Migration, error) {
	var status []Migration
	err := s.snapshot(ctx, "migration status", func(q *querier) (err error) {
		status, err = s.applied(ctx, q)
		return err
	})
	return status, err
}

// applied reads what was applied and refuses a schema that a later program made.
func (s *Store) applied(ctx context.Context, q *querier) ([]Migration, error) {
	status := slices.Clone(s.migrations)
	var known bool
	if _, err := q.each(ctx, "migrations_known", func(r row) error { known = r.integer(0) > 0; return nil }); err != nil || !known {
		return status, err
	}
	_, err := q.each(ctx, "migrations_read", func(r row) error {
		version, name := r.count(0), r.text(1)
		if version > len(status) || status[version-1].Name != name {
			return &onereply.Error{
				Op:   "schema",
				Err:  fmt.Errorf("migration %s is not known to this program", name),
				Hint: "the file was migrated by a later version; run that one, or newer",
			}
		}
		status[version-1].AppliedAt = moment(r.integer(2))
		return nil
	})
	return status, err
}

// Migrate applies what is missing, each migration in a transaction of its own.
// Two programs that do it at once take turns.
func (s *Store) Migrate(ctx context.Context) error {
	for {
		more, err := s.migrateNext(ctx)
		if err != nil || !more {
			return fault("migrate "+s.path, err)
		}
	}
}

// migrateNext applies the first migration that is missing, if one is.
func (s *Store) migrateNext(ctx context.Context) (more bool, err error) {
	tx, err := s.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undo(tx))
		}
	}()
	q := &querier{s: s, tx: tx, now: s.clock.read(0)}
	if _, err := q.exec(ctx, "migrations_table"); err != nil {
		return false, err
	}
	status, err := s.applied(ctx, q)
	if err != nil {
		return false, err
	}
	next := slices.IndexFunc(status, func(m Migration) bool { return m.AppliedAt.IsZero() })
	if next < 0 {
		return false, tx.Rollback()
	}
	m := status[next]
	if _, err := tx.ExecContext(ctx, m.SQL); err != nil {
		return false, fmt.Errorf("migration %s: %w", m.Name, err)
	}
	if _, err := q.exec(ctx, "migrations_add", "version", m.Version, "name", m.Name, "now", q.now); err != nil {
		return false, fmt.Errorf("migration %s: %w", m.Name, err)
	}
	return true, tx.Commit()
}

// checkSchema migrates if the options say so; else it refuses a schema that is
// not up to date, unless the options say that this comes later.
func (s *Store) checkSchema(ctx context.Context) error {
	status, err := s.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	missing := slices.IndexFunc(status, func(m Migration) bool { return m.AppliedAt.IsZero() })
	switch {
	case missing < 0 || s.options.Unmigrated && !s.options.Migrate:
		return nil
	case s.options.Migrate:
		return s.Migrate(ctx)
	}
	return unavailable("schema of "+s.path, fmt.Errorf("migration %s is not applied", status[missing].Name), migrateHint)
}
