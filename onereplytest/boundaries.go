package onereplytest

import (
	"database/sql"
	"testing"

	"github.com/onereply/onereply"
)

// Case is a kind and what its hooks are expected to leave.
type Case struct {
	// Kind is the kind under test.
	Kind onereply.Kind
	// Submission makes the i-th submission, under the key. Different i should give
	// different inputs, and the same i the same.
	Submission func(i int, key string) (onereply.Submission, error)

	// Created finds what the kind's Created hook leaves: one row a task. Nil: the
	// hook leaves nothing that could be counted.
	Created Rows
	// Ended finds what the kind's Ended hook leaves: one row for each end that
	// EndedOn names. Nil: nothing that could be counted.
	Ended Rows
	// EndedOn names the ends for which the Ended hook leaves a row; default
	// completed alone.
	EndedOn []onereply.Status

	// Check looks at the program's own rows when a boundary is over. It may be nil.
	Check func(t testing.TB, s Snapshot)
}

// Snapshot is where the world stands when a boundary is over: every task has
// ended, and everyone who came late has been.
type Snapshot struct {
	Boundary string
	Tasks    []onereply.Task // every task there is, whole
	DB       *sql.DB         // reads what is committed
}

// Boundaries runs every boundary as a subtest, each in a fresh [World] for which
// build builds the program under test: its tables, its kind, the way to its rows.
// Boundaries run in parallel, so what build makes must not be shared between
// them. A boundary in the middle of a call is skipped for a kind that makes none.
func Boundaries(t *testing.T, build func(t *testing.T, w *World) Case) {
	t.Helper()
	for _, b := range boundaries {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			Run(t, func(t *testing.T, w *World) {
				r := &trial{World: w, t: t, name: b.name, c: build(t, w), created: map[onereply.TaskID]bool{}}
				if len(r.c.EndedOn) == 0 {
					r.c.EndedOn = []onereply.Status{onereply.StatusCompleted}
				}
				b.run(r)
				r.settle()
			})
		})
	}
}

// boundaries are the moments that matter, in the order in which a task meets them.
var boundaries = []struct {
	name string
	run  func(*trial)
}{
	{"nothing goes wrong", plain},
	{"submit: the same inputs under another key are another task", anotherKey},
	{"submit: rolled back, then submitted again", submitRolledBack},
	{"submit: committed, and the answer lost", submitAnswerLost},
	{"submit: fifty at once under one key, to two processes", submitAtOnce},
	{"submit: several in one transaction", submitTogether},
	{"claim: the worker is killed right after", killedAt(Claimed)},
	{"claim: the task is delivered again while it runs and after its end", deliveredTwice},
	{"call: the worker is killed before it is sent", killedAt(Counted)},
	{"call: the worker is killed in the middle", killedAt(InCall)},
	{"call: the answer breaks off in the middle", ends(Cut)},
	{"call: the answer is lost", ends(Lost)},
	{"call: the provider asks to come back", ends(Limited)},
	{"call: no connection", ends(NotSent)},
	{"call: the provider refuses for good", refused},
	{"call: the provider stays silent until the deadline", deadlinePasses},
	{"accept: the worker is killed after the answer", killedAt(Answered)},
	{"accept: the worker is killed as it begins", killedAt(Accepting)},
	{"accept: the worker is killed once it is committed", killedAt(Accepted)},
	{"accept: committed, and the answer lost", acceptAnswerLost},
	{"accept: rolled back once", acceptRolledBack},
	{"accept: the lease runs out on the way", leaseRunsOut},
	{"accept: a zombie returns while its successor works", zombie(false)},
	{"accept: a zombie returns when its successor is done", zombie(true)},
	{"accept: several in one transaction", acceptTogether(0)},
	{"accept: several in one transaction that is rolled back once", acceptTogether(1)},
	{"cancel: while it is queued", cancelledQueued},
	{"cancel: in the call", cancelledInCall},
	{"cancel: just before the accept", cancelledBeforeAccept},
	{"cancel: at the moment of the accept", cancelledAtAccept},
	{"drain: in the middle of a call", drained},
	{"resume: after a failure", resumed},
}

// plain is one task from end to end.
func plain(r *trial) {
	r.start("worker")
	r.completes(r.submit(0, "key"))
}
