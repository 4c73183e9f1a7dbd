// Package e2e tries the promises where they matter: with the real binary, in
// processes of their own that are killed, frozen and cut off for real, on one
// SQLite file or one PostgreSQL server, against a scripted model.
//
// boundaries_test.go lists every failure boundary by name and is the place to
// start reading; each function it names tells its race as numbered steps, and
// runs on both databases. A boundary is passed only when the ledger balances
// afterwards (ledger_test.go reads the database itself, not the API): one
// response a task at most, one message a key, no call that was not counted,
// nothing left in flight, one terminal event a stream, and no end that changed
// later.
//
// What only a server can do to its clients is in server_*_test.go: it crashes,
// ends connections and transactions, loses the answers to COMMITs, is full,
// moves, fails over, has another idea of the time, forgets its notifications,
// and gets a new schema under running processes. server_test.go starts one, in a
// temporary directory, where the machine has its binaries.
//
// Where a process must end at one exact commit, the binary is built with the
// tag crashpoints (cmd/onereply/crashpoints.go); everywhere else it is the
// binary that ships.
package e2e
