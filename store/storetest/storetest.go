// Package storetest is the suite that every store passes. Each case opens a
// fresh store and asks it for one promise, with exact values and, where time
// decides, to the millisecond.
//
// An adapter runs it with [Run] and a [Harness]. [Fails] runs a case against a
// store that is broken on purpose, to prove that the case would notice.
// Start reading at env.go, which has the verbs that the cases are written in.
package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Harness opens a fresh, empty, migrated store for one case and arranges for
// it to be closed at the case's end.
type Harness func(t testing.TB) Fixture

// Fixture is one store under test, and what a case may do to it from outside.
type Fixture struct {
	// Store is the store under test.
	Store store.Store
	// Second is another handle on the same database, as another process has.
	Second store.Store
	// Now is the database's time, and Advance moves it. It stands still
	// otherwise, so that cases can stand on a boundary.
	Now     func() time.Time
	Advance func(d time.Duration)
	// LoseNextCommitAck makes the next commit of Store happen and its answer
	// be lost.
	LoseNextCommitAck func()
	// AddRow writes a row of the application's own in a transaction, and Rows
	// counts the rows that are committed.
	AddRow func(ctx context.Context, tx onereply.Tx, name string) error
	Rows   func(ctx context.Context) (int, error)
}

// Case is one test of the suite.
type Case struct {
	Name string
	Test func(*Env)
}

// Run runs the whole suite, each case on a store of its own.
func Run(t *testing.T, open Harness) {
	RunSome(t, open, func(Case) bool { return true })
}

// RunSome runs the cases that are wanted.
func RunSome(t *testing.T, open Harness, wanted func(Case) bool) {
	for _, c := range Cases() {
		if !wanted(c) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Test(newEnv(t, open))
		})
	}
}

// Cases returns every case of the suite, in the order of a task's life.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{
		submitCases(), expiryCases(), claimCases(), guardCases(), callCases(), acceptCases(), budgetCases(),
		retryCases(), commandCases(), transactionCases(), draftCases(), timelineCases(), purgeCases(), queryCases(),
	} {
		all = append(all, part...)
	}
	return all
}

// Fails reports whether a case fails on a store, and what it said. It is for
// proving, with stores that are broken on purpose, that the suite would notice.
func Fails(t testing.TB, c Case, open Harness) (failed bool, said []string) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		c.Test(newEnv(r, open))
	}()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed, r.said
}

// recorder is a testing.TB whose failures are noted and not the test's.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	said   []string
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.said = append(r.said, text)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) FailNow() {
	r.note("failed")
	runtime.Goexit()
}

func (r *recorder) Fail()                     { r.note("failed") }
func (r *recorder) Error(args ...any)         { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.note(fmt.Sprintf(f, a...)) }
func (r *recorder) Fatal(args ...any)         { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); runtime.Goexit() }
