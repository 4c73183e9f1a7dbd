package sqlite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/storetest"
)

// mutant is a statement with one guard taken out, and where the suite notices.
type mutant struct {
	statement, part, instead string
	where                    string // prefix of the names of the cases that may notice
}

func mutants() []mutant {
	var all []mutant
	for _, name := range guardedStatements {
		if name == "guard" {
			continue // read only: see TestRefusedCountIsNoExhaustedBudget's mutants below
		}
		for _, part := range guardParts {
			if part == "AND status = 'running'" {
				continue // implied by the lease, which every end clears: see TestStatusAndSlotGuardOnTheirOwn
			}
			all = append(all, mutant{name, part, "", "guard"})
		}
	}
	return append(all,
		mutant{"claim", "version = version + 1", "version = version + (version = 0)", "claim"},
		mutant{"claim", "AND run_at <= ?", "", "claim"},
		mutant{"claim", "AND lease_until <= ?", "", "claim"},
		mutant{"claim_expired", "lease_until <= ?", "lease_until <= ? - 1", "claim"},
		mutant{"claim_due", "run_at <= ?", "run_at <= ? - 1", "submit"},
		mutant{"claim_close", "AND outcome = ''", "", "guard"},
		mutant{"submit_key", "submissions.expires_at <= excluded.created_at", "submissions.expires_at < excluded.created_at", "key"},
		mutant{"submit_key", "submissions.expires_at <= excluded.created_at", "submissions.expires_at - 1 <= excluded.created_at", "key"},
		mutant{"submit_key", "AND status IN ('queued', 'running')", "AND status IN ('queued')", "key"},
		mutant{"submit_key", "AND status IN ('queued', 'running')", "AND status IN ('running')", "key"},
		mutant{"count", "AND calls_used < calls_max", "", "call"},
		mutant{"accept_first_valid", "acceptance = 'first-valid'", "1", "guard"},
		mutant{"accept_first_valid", "deadline > ?", "deadline >= ?", "accept by first-valid"},
		mutant{"accept_first_valid", "AND version = ? AND attempt = ?", "AND version = ? AND ? <> ''", "accept by first-valid"},
		mutant{"accept_first_valid", "status IN ('queued', 'running')", "1", "accept by first-valid"},
		mutant{"cancel", "AND status IN ('queued', 'running')", "", "cancel"},
		mutant{"resume", "attempts_max = attempts_max + ?", "attempts_used = attempts_used + ? - attempts_used, attempts_max = attempts_max", "resume"},
		mutant{"resume", "elapsed_from = ?,", "", "resume"},
		mutant{"purge_keys purge_keys_find", "s.expires_at <= ?", "s.expires_at <= ? + 1", "purge"},
		mutant{"purge_tasks purge_tasks_find", "AND s.task_id = t.id", "AND s.task_id = t.id AND 0", "purge"},
		mutant{"event", "count = count + 1", "count = 1", "submit"},
		mutant{"renew", "CASE WHEN deadline > ? THEN deadline ELSE ? + ? END", "? + ? + 0 * ?", "budget"},
	)
}

// TestTheSuiteNoticesEveryGuardTakenOut is the proof that each guard is tested:
// without it, a case falls.
func TestTheSuiteNoticesEveryGuardTakenOut(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("under the race detector; runs without it")
	}
	for _, m := range mutants() {
		t.Run(m.statement+" without "+m.part+" "+m.instead, func(t *testing.T) {
			t.Parallel()
			broken := func(tb testing.TB) storetest.Fixture {
				f := fixture(tb)
				for _, handle := range []any{f.Store, f.Second} {
					for _, statement := range strings.Fields(m.statement) {
						if err := handle.(*sqlite.Store).Mutate(t.Context(), statement, m.part, m.instead); err != nil {
							t.Error(err) // the mutant's own fault, not a kill
						}
					}
				}
				return f
			}
			for _, c := range storetest.Cases() {
				if !strings.HasPrefix(c.Name, m.where) {
					continue
				}
				if failed, _ := storetest.Fails(t, c, broken); failed {
					return
				}
			}
			t.Errorf("no case named %q… noticed", m.where)
		})
	}
}

// The status in a guard is implied by the lease, which every end clears; and the
// empty slot by the status. So they are proved by planting a row as no method
// leaves it: ended, or its slot full, with the lease still running.
func TestStatusAndSlotGuardOnTheirOwn(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]string{
		"queued":    "UPDATE tasks SET status = 'queued'",
		"completed": "UPDATE tasks SET status = 'completed'",
		"failed":    "UPDATE tasks SET status = 'failed'",
		"cancelled": "UPDATE tasks SET status = 'cancelled'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, a := running(t)
			g := a.Guard
			if _, err := s.Record(t.Context(), []store.Record{{Guard: g, Op: store.CountCall}}); err != nil {
				t.Fatal(err)
			}
			if err := s.Exec(t.Context(), plant); err != nil {
				t.Fatal(err)
			}
			v, err := s.Record(t.Context(), []store.Record{
				{Guard: g, Op: store.Renew, Lease: time.Hour}, {Guard: g, Op: store.CountCall},
				{Guard: g, Op: store.CloseCall, Closed: &store.ClosedCall{Number: 1}},
				{Guard: g, Op: store.Checkpoint, Operation: "x"}, {Guard: g, Op: store.DraftText, Seq: 1, Text: "x"},
				{Guard: g, Op: store.Progress, State: []byte("x")},
			})
			if err != nil {
				t.Fatal(err)
			}
			for op := store.Accept; op <= store.Release; op++ {
				v = append(v, finish(t, s, store.Ending{Guard: g, Op: op, Response: []byte(`{}`)}))
			}
			for i, one := range v {
				if one.Refused == nil {
					t.Errorf("write %d of an assignment of a %s task was done", i, name)
				}
			}
		})
	}
	t.Run("slot full", func(t *testing.T) {
		t.Parallel()
		s, a := running(t)
		err := s.Exec(t.Context(), "INSERT INTO responses (task_id, version, attempt, response, accepted_at) VALUES (?, 1, 'x', '{}', 1)", string(a.Task.ID))
		if err != nil {
			t.Fatal(err)
		}
		if v := finish(t, s, store.Ending{Guard: a.Guard, Op: store.Accept, Response: []byte(`{}`)}); v.Refused == nil {
			t.Error("a full slot was accepted into")
		}
		if err := s.Exec(t.Context(), "UPDATE tasks SET acceptance = 'first-valid'"); err != nil {
			t.Fatal(err)
		}
		if v := finish(t, s, store.Ending{Guard: a.Guard, Op: store.Accept, Response: []byte(`{}`)}); v.Refused == nil {
			t.Error("a full slot was accepted into under first-valid")
		}
		if err := s.Exec(t.Context(), "UPDATE responses SET response = '{1}'"); err == nil {
			t.Error("a response could be changed")
		}
	})
}
