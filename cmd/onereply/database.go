package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/internal/settings"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/postgres"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/tables"
)

// database is an open store of either make.
type database struct {
	store  store.Store
	tables tables.Database
	close  func() error
}

// openDatabase opens what --database names and brings its schema up to date,
// unless that was declined.
func openDatabase(ctx context.Context, s settings.Serve, log *slog.Logger) (*database, error) {
	if s.Database.URL != "" {
		return openServer(ctx, s.Database, s.Migrate, log)
	}
	db, err := sqlite.Open(ctx, s.Database.File, sqlite.Options{Migrate: s.Migrate, Logger: log})
	if err != nil {
		return nil, err
	}
	return &database{store: db, tables: fileTables(db), close: db.Close}, nil
}

// fileTables lets the features' tables reach the store's file.
func fileTables(db *sqlite.Store) tables.Database {
	return tables.Database{
		Read:   tables.SQL(db.Reader()),
		Unwrap: func(tx onereply.Tx) tables.Querier { return tables.SQL(sqlite.Unwrap(tx)) },
		Now:    db.Now,
		Fault:  sqlite.Fault,
	}
}

// defaultConnections is the size of the pool where the URL names none: a few
// connections with full batches do more than many.
const defaultConnections = 16

// connectServer makes a pool and a store on it, and connects to nothing yet.
func connectServer(ctx context.Context, d settings.Database, log *slog.Logger) (*postgres.Store, *pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(d.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("--database %s: %w", d, err)
	}
	if !strings.Contains(d.URL, "pool_max_conns=") {
		c.MaxConns = defaultConnections
	}
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "onereply"
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("--database %s: %w", d, err)
	}
	db, err := postgres.New(pool, postgres.Options{Schema: d.Schema, Listen: d.Listen, Logger: log})
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("--database %s: %w", d, err)
	}
	return db, pool, nil
}

func openServer(ctx context.Context, d settings.Database, migrate bool, log *slog.Logger) (*database, error) {
	db, pool, err := connectServer(context.WithoutCancel(ctx), d, log)
	if err != nil {
		return nil, err
	}
	shut := func() error {
		err := db.Close()
		pool.Close()
		return err
	}
	if migrate {
		err = db.Migrate(ctx)
	}
	if err == nil {
		err = db.Check(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--database %s: %w", d, err), shut())
	}
	return &database{store: db, tables: db.Tables(), close: shut}, nil
}
