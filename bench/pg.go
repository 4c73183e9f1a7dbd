package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onereply/onereply/internal/pgcluster"
)

// connections is how many each side may use: more are slower, for everybody, on
// two cores.
const connections = 16

// pgNotes is the table of the application whose rows every side writes.
const pgNotes = `CREATE TABLE notes (task_id text COLLATE "C" NOT NULL, role text NOT NULL, text text NOT NULL, PRIMARY KEY (task_id, role))`

// postgres returns the cluster that all sides share. It waits for the disk.
func (l *lab) postgres(ctx context.Context) (*pgcluster.Cluster, error) {
	if l.cluster != nil {
		return l.cluster, nil
	}
	cluster, err := pgcluster.Start(ctx,
		"fsync = on", "synchronous_commit = on", "full_page_writes = on", "shared_buffers = '512MB'", "max_wal_size = '8GB'",
		"checkpoint_timeout = '15min'", "shared_preload_libraries = 'pg_stat_statements'", "track_io_timing = off")
	if err != nil {
		return nil, err
	}
	l.cluster = cluster
	return cluster, nil
}

// database is one database of the cluster, made for one run of one side.
type database struct {
	url     string
	name    string
	pool    *pgxpool.Pool
	cluster *pgcluster.Cluster
}

// database makes a fresh one with the application's table.
func (l *lab) database(ctx context.Context) (*database, error) {
	cluster, err := l.postgres(ctx)
	if err != nil {
		return nil, err
	}
	l.files++
	d := &database{name: fmt.Sprint("bench", l.files), cluster: cluster}
	// A checkpoint first: no side pays for the pages of the one before it.
	if err := admin(ctx, cluster, "CREATE DATABASE "+d.name, "CHECKPOINT"); err != nil {
		return nil, err
	}
	d.url = cluster.URL(d.name)
	if d.pool, err = d.connect(ctx, connections); err != nil {
		return nil, err
	}
	_, err = d.pool.Exec(ctx, pgNotes)
	return d, err
}

// connect opens so many connections: opening them belongs in no figure.
func (d *database) connect(ctx context.Context, n int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = n, n
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	all := make([]*pgxpool.Conn, n)
	for i := range all {
		if all[i], err = pool.Acquire(ctx); err != nil {
			return nil, err
		}
	}
	for _, c := range all {
		c.Release()
	}
	return pool, nil
}

// close drops the database.
func (d *database) close(ctx context.Context) error {
	if d.pool != nil {
		d.pool.Close()
	}
	return admin(ctx, d.cluster, "DROP DATABASE "+d.name+" WITH (FORCE)")
}

func admin(ctx context.Context, cluster *pgcluster.Cluster, statements ...string) error {
	conn, err := pgx.Connect(ctx, cluster.URL("postgres"))
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s, err), conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// serverCPU is what the server and its backends have used so far. Backends that
// ended are counted by their parent.
func serverCPU(pid int) (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it ended since it was listed
		}
		id, rest, ok := strings.Cut(string(raw), " (")
		if !ok {
			continue
		}
		fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
		own, child := id == strconv.Itoa(pid), fields[1] == strconv.Itoa(pid)
		if !own && !child {
			continue
		}
		count := fields[11:13]
		if own {
			count = fields[11:15]
		}
		for _, f := range count {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func serverVersion(ctx context.Context, cluster *pgcluster.Cluster) (version string, err error) {
	conn, err := pgx.Connect(ctx, cluster.URL("postgres"))
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	return version, errors.Join(err, conn.Close(ctx))
}
