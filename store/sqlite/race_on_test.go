//go:build race

package sqlite_test

// raceDetector: mutants are about SQL and not about concurrency, and the
// detector makes them take minutes.
const raceDetector = true
