package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/onereply/onereply/internal/settings"
	"github.com/onereply/onereply/store/postgres"
	"github.com/onereply/onereply/store/sqlite"
)

// migrate brings the schema up to date, or shows it.
func migrate(ctx context.Context, p *process, args []string) error {
	set := newFlags("migrate")
	database := settings.RegisterDatabase(set, p.lookup)
	own, err := parseFlags(set, args)
	if err != nil {
		return err
	}
	if len(own) != 1 {
		return usagef("needs one action: up, status or print")
	}
	d, err := database()
	if err != nil {
		return err
	}
	switch own[0] {
	case "up", "status":
		if d.URL == "" && own[0] == "status" {
			if _, err := os.Stat(d.File); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s does not exist yet; serve creates it, and so does: onereply migrate up", d.File)
			}
		}
		return onSchema(ctx, d, func(s schema) error {
			if own[0] == "up" {
				return migrateUp(ctx, p, d, s)
			}
			return migrateStatus(ctx, p, s)
		})
	case "print":
		print := sqlite.MigrationSQL
		if d.URL != "" {
			print = func() (string, error) { return postgres.MigrationSQL(d.Schema) }
		}
		script, err := print()
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(p.stdout, script)
		return err
	}
	return usagef("there is no action %q; use up, status or print", own[0])
}

// migration is one step of a schema, of either make.
type migration struct {
	name      string
	appliedAt time.Time // zero: not applied
}

// schema is what migrate does to a database.
type schema struct {
	status func(context.Context) ([]migration, error)
	up     func(context.Context) error
}

// onSchema opens the database for its schema only.
func onSchema(ctx context.Context, d settings.Database, f func(schema) error) (err error) {
	if d.URL != "" {
		db, pool, err := connectServer(ctx, d, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer pool.Close()
		return errors.Join(f(schema{up: db.Migrate, status: func(ctx context.Context) ([]migration, error) {
			all, err := db.MigrationStatus(ctx)
			return steps(all, func(m postgres.Migration) migration { return migration{m.Name, m.AppliedAt} }), err
		}}), db.Close())
	}
	db, err := sqlite.Open(ctx, d.File, sqlite.Options{Unmigrated: true})
	if err != nil {
		return err
	}
	return errors.Join(f(schema{up: db.Migrate, status: func(ctx context.Context) ([]migration, error) {
		all, err := db.MigrationStatus(ctx)
		return steps(all, func(m sqlite.Migration) migration { return migration{m.Name, m.AppliedAt} }), err
	}}), db.Close())
}

func steps[M any](all []M, of func(M) migration) []migration {
	known := make([]migration, len(all))
	for i, m := range all {
		known[i] = of(m)
	}
	return known
}

func migrateUp(ctx context.Context, p *process, d settings.Database, s schema) error {
	before, err := s.status(ctx)
	if err != nil {
		return err
	}
	if err := s.up(ctx); err != nil {
		return err
	}
	applied := 0
	for _, m := range before {
		if m.appliedAt.IsZero() {
			fmt.Fprintf(p.stdout, "applied %s\n", m.name)
			applied++
		}
	}
	if applied == 0 {
		fmt.Fprintf(p.stdout, "%s is up to date\n", d)
	}
	return nil
}

func migrateStatus(ctx context.Context, p *process, s schema) error {
	status, err := s.status(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"MIGRATION", "APPLIED"}}
	for _, m := range status {
		at := "missing"
		if !m.appliedAt.IsZero() {
			at = moment(m.appliedAt)
		}
		rows = append(rows, []string{m.name, at})
	}
	table(p.stdout, rows)
	return nil
}
