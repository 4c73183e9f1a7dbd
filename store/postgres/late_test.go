package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/postgres"
)

// joinMethods force the planner's hand: whatever way it joins, a clock that was
// read before a lock must never decide. Forbidden joins cost so much on paper that
// the server would compile each statement, hence jit=off.
var joinMethods = map[string]string{
	"as the planner likes":   "",
	"with nested loops only": "&enable_hashjoin=off&enable_mergejoin=off&jit=off",
	"with hash joins only":   "&enable_nestloop=off&enable_mergejoin=off&jit=off",
	"with merge joins only":  "&enable_nestloop=off&enable_hashjoin=off&jit=off",
}

// The trap: an UPDATE that waited behind a reader's lock keeps the clock it read
// before the wait, because the row has not changed, and accepts a late answer.
func TestAWriteThatWaitsForTheRowPastItsLeaseIsRefused(t *testing.T) {
	t.Parallel()
	for how, settings := range joinMethods {
		for _, lock := range []string{"FOR SHARE", "FOR NO KEY UPDATE", "FOR UPDATE"} {
			if settings != "" && lock != "FOR SHARE" {
				continue
			}
			t.Run(lock+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, settings, postgres.Options{LockTimeout: 30 * time.Second})
				assignments := make([]store.Assignment, len(writes()))
				for i := range assignments {
					assignments[i] = s.running(400 * time.Millisecond)
				}
				tx := s.holding("SELECT id FROM " + s.schema + ".tasks " + lock)
				verdicts, errs := make([]store.Verdict, len(assignments)), make([]error, len(assignments))
				var wg sync.WaitGroup
				for i, w := range writes() {
					wg.Go(func() { verdicts[i], errs[i] = w.do(s, assignments[i].Guard) })
				}
				s.untilBlocked(len(assignments))
				for _, a := range assignments {
					s.untilOver(a.Task.ID)
				}
				s.must(tx.Rollback(t.Context()))
				wg.Wait()
				for i, w := range writes() {
					s.must(errs[i])
					if verdicts[i].Refused == nil || verdicts[i].Refused.Why != onereply.WhyExpired {
						t.Errorf("%s after the wait: %+v, want refused as expired", w.name, verdicts[i])
					}
					if got := s.task(assignments[i].Task.ID); got.Status != onereply.StatusRunning || got.Version != 1 || got.Budget.Calls.Used != 1 {
						t.Errorf("%s left the task as %+v", w.name, got)
					}
				}
			})
		}
	}
}

// A foreign key's check, such as a replay's event in somebody's long
// transaction makes, holds no lease up.
func TestAReferenceToTheTaskInALongTransactionHoldsNoWriteUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	assignments := make([]store.Assignment, len(writes()))
	for i := range assignments {
		assignments[i] = s.running(time.Minute)
	}
	s.holding("SELECT id FROM " + s.schema + ".tasks FOR KEY SHARE")
	for i, w := range writes() {
		v, err := w.do(s, assignments[i].Guard)
		if err != nil || v.Refused != nil {
			t.Errorf("%s beside a reader of the key: %+v, %v", w.name, v, err)
		}
	}
}

// One row that somebody holds does not hold its neighbours, and a renewal that
// cannot be made says how long the lease is good for as it stands.
func TestABusyRowHoldsNoNeighbour(t *testing.T) {
	t.Parallel()
	for how, settings := range joinMethods {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, settings, postgres.Options{LockTimeout: 50 * time.Millisecond})
			var records []store.Record
			for range 20 {
				records = append(records, store.Record{Guard: s.running(time.Minute).Guard, Op: store.Renew, Lease: time.Hour})
			}
			held := records[7].Guard.Task
			tx := s.holding("SELECT id FROM "+s.schema+".tasks WHERE id = $1 FOR UPDATE", string(held))
			v, err := s.store.Record(t.Context(), records)
			s.must(err)
			for i := range v {
				left := v[i].LeaseFor
				switch {
				case v[i].Refused != nil:
					t.Errorf("entry %d was refused: %v", i, v[i].Refused)
				case i == 7 && (left <= 0 || left > time.Minute):
					t.Errorf("the busy entry's lease is good for %s, want what is left of a minute", left)
				case i != 7 && (left <= time.Minute || left > time.Hour):
					t.Errorf("entry %d's lease is good for %s, want it extended", i, left)
				}
			}
			s.must(tx.Rollback(t.Context()))
			v, err = s.store.Record(t.Context(), records[7:8])
			s.must(err)
			if v[0].LeaseFor <= time.Minute {
				t.Errorf("the next renewal gave %s", v[0].LeaseFor)
			}
		})
	}
}

func TestTakeoverAndRenewAtOnceGiveOneHolder(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	renewed, taken := 0, 0
	for range 40 {
		a := s.running(30 * time.Millisecond)
		s.until("the lease is nearly over", "SELECT lease_until <= clock_timestamp() + interval '4ms' FROM "+s.schema+".tasks WHERE id = $1", string(a.Task.ID))
		var v []store.Verdict
		var c store.Claimed
		var errs [2]error
		var wg sync.WaitGroup
		wg.Go(func() {
			v, errs[0] = s.store.Record(t.Context(), []store.Record{{Guard: a.Guard, Op: store.Renew, Lease: time.Hour}})
		})
		wg.Go(func() {
			for range 20 { // around the very moment
				if c, errs[1] = s.claim(time.Hour, a.Task.ID); errs[1] != nil || len(c.Assignments) > 0 {
					return
				}
			}
		})
		wg.Wait()
		s.must(errs[0])
		s.must(errs[1])
		took := len(c.Assignments) == 1
		if took == (v[0].Refused == nil) && took {
			t.Fatalf("both hold task %s: renewed for %s, and taken as %s", a.Task.ID, v[0].LeaseFor, c.Assignments[0].Guard)
		}
		if task := s.task(a.Task.ID); took && task.Version != 2 || !took && task.Version != 1 {
			t.Fatalf("version %d after taken=%v", task.Version, took)
		}
		if took {
			taken++
		} else if v[0].Refused == nil {
			renewed++
		}
	}
	t.Logf("%d renewed, %d taken over", renewed, taken)
}
