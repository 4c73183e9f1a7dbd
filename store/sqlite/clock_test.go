package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
)

// A host's clock that is set back by hours neither extends nor cuts a lease:
// behind the mark, time runs on by the monotonic clock, in this process, in
// another, and after a restart.
func TestClockSetBackByHoursKeepsLeases(t *testing.T) {
	t.Parallel()
	path, ids := filepath.Join(t.TempDir(), "test.db"), onereply.NewIDs()
	clock := newHandClock()
	o := sqlite.Options{Now: clock.Now, Elapsed: clock.Elapsed}
	first := open(t, path, o)
	task, err := submit(t.Context(), first, submission(ids))
	if err != nil {
		t.Fatal(err)
	}
	a, err := claim(t.Context(), first, ids, "w1")
	if err != nil || len(a) != 1 {
		t.Fatalf("claim: %v, %v", a, err)
	}
	clock.Step(-5 * time.Hour)
	restarted := open(t, path, o)
	for name, s := range map[string]*sqlite.Store{"the same process": first, "a process started since": restarted} {
		if v, err := s.Record(t.Context(), []store.Record{{Guard: a[0].Guard, Op: store.Progress, State: []byte("x")}}); err != nil || v[0].Refused != nil {
			t.Errorf("%s: the holder's write: %+v, %v", name, v, err)
		}
		if got, err := claim(t.Context(), s, ids, "w2"); err != nil || len(got) != 0 {
			t.Errorf("%s: claimed %v, %v while the lease runs", name, got, err)
		}
	}
	clock.Advance(30*time.Second - time.Millisecond)
	for _, s := range []*sqlite.Store{first, restarted} {
		if got, err := claim(t.Context(), s, ids, "w2"); err != nil || len(got) != 0 {
			t.Errorf("1ms before the lease is over: claimed %v, %v", got, err)
		}
	}
	clock.Advance(time.Millisecond)
	got, err := claim(t.Context(), restarted, ids, "w2")
	if err != nil || len(got) != 1 || got[0].Guard.Version != 2 || !got[0].Took {
		t.Fatalf("when the lease is over: claimed %+v, %v", got, err)
	}
	if want := task.Task.CreatedAt.Add(30 * time.Second); !got[0].Task.LeaseUntil.Equal(want.Add(30 * time.Second)) {
		t.Errorf("lease until %v, want 30s after %v", got[0].Task.LeaseUntil, want)
	}
	// Time handed out never falls, and the wall clock is followed again once it
	// has caught up.
	clock.Advance(6 * time.Hour)
	v, err := submit(t.Context(), first, submission(ids))
	if err != nil || !v.Task.CreatedAt.Equal(task.Task.CreatedAt.Add(6*time.Hour+30*time.Second)) {
		t.Errorf("created at %v, %v; first at %v", v.Task.CreatedAt, err, task.Task.CreatedAt)
	}
}

// A step forward may take a lease over early, which the fence makes safe.
func TestClockSetForwardByHoursFencesTheHolder(t *testing.T) {
	t.Parallel()
	path, ids := filepath.Join(t.TempDir(), "test.db"), onereply.NewIDs()
	clock := newHandClock()
	s := open(t, path, sqlite.Options{Now: clock.Now, Elapsed: clock.Elapsed})
	e := submission(ids)
	e.Elapsed = 24 * time.Hour
	if _, err := submit(t.Context(), s, e); err != nil {
		t.Fatal(err)
	}
	first, err := claim(t.Context(), s, ids, "w1")
	if err != nil || len(first) != 1 {
		t.Fatalf("claim: %v, %v", first, err)
	}
	clock.Step(5 * time.Hour)
	second, err := claim(t.Context(), s, ids, "w2")
	if err != nil || len(second) != 1 {
		t.Fatalf("after the step: %v, %v", second, err)
	}
	clock.Step(-5 * time.Hour)
	if v := finish(t, s, store.Ending{Guard: first[0].Guard, Op: store.Accept, Response: []byte(`{}`)}); v.Refused == nil || v.Refused.Why != onereply.WhyTakenOver {
		t.Errorf("the first holder's answer: %+v, want it fenced out", v)
	}
	if v := finish(t, s, store.Ending{Guard: second[0].Guard, Op: store.Accept, Response: []byte(`{}`)}); v.Refused != nil {
		t.Errorf("the second holder's answer: %v", v.Refused)
	}
}

// Readers see leases end as writers do, even where the wall clock lags.
func TestDueFollowsTheMark(t *testing.T) {
	t.Parallel()
	path, ids := filepath.Join(t.TempDir(), "test.db"), onereply.NewIDs()
	clock := newHandClock()
	s := open(t, path, sqlite.Options{Now: clock.Now, Elapsed: clock.Elapsed})
	if _, err := submit(t.Context(), s, submission(ids)); err != nil {
		t.Fatal(err)
	}
	clock.Step(-time.Hour)
	slow := open(t, path, sqlite.Options{Now: clock.Now, Elapsed: clock.Elapsed})
	if due, err := slow.Due(t.Context(), []string{"reply"}); err != nil || !due.Now {
		t.Errorf("due: %+v, %v; want now", due, err)
	}
}

// The real store in a bubble of virtual time: a worker dies, and thirty seconds
// later, to the millisecond, its task is taken over.
func TestTakeoverOnVirtualTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "test.db"), sqlite.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		ids := onereply.NewIDs()
		if _, err := submit(t.Context(), s, submission(ids)); err != nil {
			t.Fatal(err)
		}
		first, err := claim(t.Context(), s, ids, "w1")
		if err != nil || len(first) != 1 {
			t.Fatalf("claim: %v, %v", first, err)
		}
		start := time.Now()
		hints, watched := 0, make(chan error, 1)
		ctx := t.Context()
		stop := make(chan struct{})
		go func() {
			ctx, cancel := contextWithStop(ctx, stop)
			defer cancel()
			watched <- s.Watch(ctx, func() { hints++ })
		}()
		for {
			due, err := s.Due(t.Context(), []string{"reply"})
			if err != nil {
				t.Fatal(err)
			}
			if due.Now {
				break
			}
			<-time.After(due.Wait)
		}
		second, err := claim(t.Context(), s, ids, "w2")
		if err != nil || len(second) != 1 || second[0].Guard.Version != 2 {
			t.Fatalf("takeover: %+v, %v", second, err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("taken over after %v of virtual time, want 30s", took)
		}
		if v := finish(t, s, store.Ending{Guard: first[0].Guard, Op: store.Accept, Response: []byte(`{}`)}); v.Refused == nil {
			t.Error("the dead worker's answer was accepted")
		}
		synctest.Wait()
		close(stop)
		if err := <-watched; err != nil {
			t.Error(err)
		}
		if hints == 0 {
			t.Error("no hint of the takeover")
		}
	})
}
