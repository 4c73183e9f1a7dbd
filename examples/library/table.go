package main

import (
	"context"
	_ "embed"
	"errors"

	"github.com/onereply/onereply/store/sqlite"
)

//go:embed sql/create.sql
var createShouts string

// open opens the engine's store and makes the program's own table in its file.
func open(ctx context.Context, file string) (*sqlite.Store, error) {
	db, err := sqlite.Open(ctx, file, sqlite.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := tx.ExecContext(ctx, createShouts); err != nil {
		return nil, errors.Join(err, tx.Rollback(), db.Close())
	}
	return db, tx.Commit()
}
