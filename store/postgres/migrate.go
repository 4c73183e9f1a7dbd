package postgres

import (
	"context"
	"database/sql"
	"embed"
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

func loadMigrations(schema string) ([]Migration, error) {
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
		all = append(all, Migration{Version: version, Name: name, SQL: inSchema(string(raw), schema)})
	}
	return all, nil
}

// MigrationSQL returns the whole schema as one script, for those who apply it by
// hand or want to read it. It needs no database.
func MigrationSQL(schema string) (string, error) {
	if schema == "" {
		schema = "onereply"
	}
	migrations, err := loadMigrations(schema)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	text, err := loadStatements(schema)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "%s;\n\n%s;\n", strings.TrimSpace(text["migrations_schema"]), strings.TrimSpace(text["migrations_table"]))
	record := strings.TrimSpace(text["migrations_add"])
	for _, m := range migrations {
		row := strings.NewReplacer("$1", strconv.Itoa(m.Version), "$2", "'"+m.Name+"'").Replace(record)
		fmt.Fprintf(&b, "\n-- %s\n%s\n\n%s;\n", m.Name, strings.TrimSpace(m.SQL), row)
	}
	return b.String(), nil
}

// MigrationStatus returns the migrations this program knows, with the time each
// was applied. It refuses a schema that a later program made.
func (s *Store) MigrationStatus(ctx context.Context) ([]Migration, error) {
	status, err := s.applied(ctx, s.db)
	return status, fault("migration status", err)
}

func (s *Store) applied(ctx context.Context, r runner) ([]Migration, error) {
	status := slices.Clone(s.migrations)
	var known sql.NullString
	err := s.do(ctx, r, "migrations_known", func(scan func(...any) error) error { return scan(&known) }, s.o.Schema+".schema_migrations")
	if err != nil || !known.Valid {
		return status, err
	}
	err = s.do(ctx, r, "migrations_read", func(scan func(...any) error) error {
		var version int
		var name string
		var at time.Time
		if err := scan(&version, &name, &at); err != nil {
			return err
		}
		if version > len(status) || status[version-1].Name != name {
			return &onereply.Error{
				Op: "schema", Err: fmt.Errorf("migration %s is not known to this program", name),
				Hint: "the schema was migrated by a later version; run that one, or newer",
			}
		}
		status[version-1].AppliedAt = at.UTC()
		return nil
	})
	return status, err
}

// migrationWait is how long one try of a migration waits for locks that running
// processes hold, so that it never makes them queue behind it for long.
const migrationWait = "; set local lock_timeout = '3s'"

// Migrate applies what is missing, each migration in a transaction of its own
// under an advisory lock, so that several programs may do it at once. It waits
// for running processes at most three seconds a try, and tries until ctx ends.
func (s *Store) Migrate(ctx context.Context) error {
	for {
		more := false
		err := s.db.inTx(ctx, migrationWait, func(t *Tx) (err error) {
			more, err = s.migrateNext(ctx, t)
			return err
		})
		if code, _ := state(err); code == lockNotAvailable && ctx.Err() == nil {
			continue // somebody is using a table; let them, and try again
		}
		if err != nil || !more {
			return fault("migrate schema "+s.o.Schema, err)
		}
	}
}

func (s *Store) migrateNext(ctx context.Context, t *Tx) (bool, error) {
	if err := s.do(ctx, t, "migrations_lock", nil, s.o.Schema); err != nil {
		return false, err
	}
	for _, step := range []string{"migrations_schema", "migrations_table"} {
		if err := s.do(ctx, t, step, nil); err != nil {
			return false, err
		}
	}
	status, err := s.applied(ctx, t)
	if err != nil {
		return false, err
	}
	next := slices.IndexFunc(status, func(m Migration) bool { return m.AppliedAt.IsZero() })
	if next < 0 {
		return false, nil
	}
	m := status[next]
	if err := t.script(ctx, m.SQL); err != nil {
		return false, fmt.Errorf("migration %s: %w", m.Name, err)
	}
	return true, s.do(ctx, t, "migrations_add", nil, m.Version, m.Name)
}

// script runs several statements, which no prepared statement can.
func (t *Tx) script(ctx context.Context, text string) error {
	if t.pgx != nil {
		_, err := t.pgx.Exec(ctx, text)
		return err
	}
	_, err := t.sql.ExecContext(ctx, text)
	return err
}
