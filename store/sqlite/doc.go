// Package sqlite is the store on one SQLite file: the database is the queue,
// and nothing else needs to run.
//
// The file is in WAL mode with synchronous=FULL: what was committed survives a
// loss of power. One connection writes; concurrent transactions share its
// commits (writer.go). A pool of connections reads and cannot write. Several
// processes on one host may share the file; a process frozen inside a write
// transaction holds it until it thaws. The file must not be on a network file
// system.
//
// Every statement is a file of its own in sql/, which says the promise it
// keeps, and the schema is in migrations/. Start reading at open.go, then
// writer.go, then follow a task: submit.go, claim.go, record.go, finish.go.
package sqlite
