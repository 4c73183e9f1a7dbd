// Package postgres is the store for more than one machine, on PostgreSQL 14 and
// later through pgx.
//
// Every statement of the engine is one file of sql/, set-based: it takes arrays,
// guards each entry by itself, and gives one verdict per entry. The pattern that
// all guarded writes share is told at the top of guard.go; what the planner and
// READ COMMITTED would otherwise do to it is told in docs/postgres.md.
//
// The server's clock decides: clock_timestamp() read after the row's lock is
// held. Nothing here reads the host's clock.
//
// Start reading at open.go, then submit.go, claim.go and guard.go.
package postgres
