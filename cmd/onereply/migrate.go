package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/onereply/onereply/internal/settings"
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
	case "up":
		return migrateUp(ctx, p, d)
	case "status":
		return migrateStatus(ctx, p, d)
	case "print":
		schema, err := sqlite.MigrationSQL()
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(p.stdout, schema)
		return err
	}
	return usagef("there is no action %q; use up, status or print", own[0])
}

func migrateUp(ctx context.Context, p *process, d settings.Database) (err error) {
	s, err := sqlite.Open(ctx, d.File, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before, err := s.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	applied := 0
	for _, m := range before {
		if m.AppliedAt.IsZero() {
			fmt.Fprintf(p.stdout, "applied %s\n", m.Name)
			applied++
		}
	}
	if applied == 0 {
		fmt.Fprintf(p.stdout, "%s is up to date\n", d)
	}
	return nil
}

func migrateStatus(ctx context.Context, p *process, d settings.Database) (err error) {
	if _, err := os.Stat(d.File); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist yet; serve creates it, and so does: onereply migrate up", d.File)
	}
	s, err := sqlite.Open(ctx, d.File, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	status, err := s.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"MIGRATION", "APPLIED"}}
	for _, m := range status {
		at := "missing"
		if !m.AppliedAt.IsZero() {
			at = moment(m.AppliedAt)
		}
		rows = append(rows, []string{m.Name, at})
	}
	table(p.stdout, rows)
	return nil
}
