package storetest_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/sqlite"
	"github.com/onereply/onereply/store/storetest"
)

// planted is a real store with one fault planted in front of it.
type planted struct {
	store.Store
	submit   func(context.Context, onereply.Tx, []store.Submission) ([]store.Submitted, error)
	claim    func(context.Context, store.Claim) (store.Claimed, error)
	record   func(context.Context, []store.Record) ([]store.Verdict, error)
	finish   func(context.Context, onereply.Tx, []store.Ending) ([]store.Verdict, error)
	command  func(context.Context, onereply.Tx, []store.Command) ([]store.Commanded, error)
	timeline func(context.Context, string, onereply.TaskID) ([]onereply.Event, error)
	inTx     func(context.Context, func(context.Context, onereply.Tx) error) error
	drafts   func(context.Context, []store.Position) ([]store.Draft, error)
	purge    func(context.Context, store.Purge) (store.Purged, error)
	watch    func(context.Context, func()) error
}

func plant(s store.Store) *planted {
	return &planted{
		Store: s, submit: s.Submit, claim: s.Claim, record: s.Record, finish: s.Finish, command: s.Command,
		timeline: s.Timeline, inTx: s.InTx, drafts: s.Drafts, purge: s.Purge, watch: s.Watch,
	}
}

func (p *planted) Submit(ctx context.Context, tx onereply.Tx, e []store.Submission) ([]store.Submitted, error) {
	return p.submit(ctx, tx, e)
}
func (p *planted) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	return p.claim(ctx, c)
}
func (p *planted) Record(ctx context.Context, e []store.Record) ([]store.Verdict, error) {
	return p.record(ctx, e)
}
func (p *planted) Finish(ctx context.Context, tx onereply.Tx, e []store.Ending) ([]store.Verdict, error) {
	return p.finish(ctx, tx, e)
}
func (p *planted) Command(ctx context.Context, tx onereply.Tx, e []store.Command) ([]store.Commanded, error) {
	return p.command(ctx, tx, e)
}
func (p *planted) Timeline(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error) {
	return p.timeline(ctx, scope, id)
}
func (p *planted) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	return p.inTx(ctx, f)
}
func (p *planted) Drafts(ctx context.Context, at []store.Position) ([]store.Draft, error) {
	return p.drafts(ctx, at)
}
func (p *planted) Purge(ctx context.Context, q store.Purge) (store.Purged, error) {
	return p.purge(ctx, q)
}
func (p *planted) Watch(ctx context.Context, hint func()) error { return p.watch(ctx, hint) }

// lenient makes both kinds of guarded writes with the guard that mend gives
// once the right one was refused.
func lenient(p *planted, mend func(context.Context, *onereply.Refusal) (onereply.Guard, bool)) {
	record, finish := p.Store.Record, p.Store.Finish
	p.record = func(ctx context.Context, entries []store.Record) ([]store.Verdict, error) {
		v, err := record(ctx, entries)
		for i := range v {
			if v[i].Refused == nil {
				continue
			}
			if g, ok := mend(ctx, v[i].Refused); ok {
				e := entries[i]
				e.Guard = g
				again, err := record(ctx, []store.Record{e})
				if err != nil {
					return nil, err
				}
				v[i] = again[0]
			}
		}
		return v, err
	}
	p.finish = func(ctx context.Context, tx onereply.Tx, entries []store.Ending) ([]store.Verdict, error) {
		v, err := finish(ctx, tx, entries)
		for i := range v {
			if v[i].Refused == nil {
				continue
			}
			if g, ok := mend(ctx, v[i].Refused); ok {
				e := entries[i]
				e.Guard = g
				again, err := finish(ctx, tx, []store.Ending{e})
				if err != nil {
					return nil, err
				}
				v[i] = again[0]
			}
		}
		return v, err
	}
}

// faults names what is planted, how, and a case that must fall.
var faults = map[string]struct {
	plant func(p *planted, f *storetest.Fixture)
	falls string
}{
	"ignores the version": {func(p *planted, _ *storetest.Fixture) {
		lenient(p, func(_ context.Context, r *onereply.Refusal) (onereply.Guard, bool) {
			return onereply.Guard{Task: r.Guard.Task, Version: r.Version, Attempt: r.By}, r.Why == onereply.WhyTakenOver
		})
	}, "guard refuses every write of a zombie after a takeover"},
	"ignores the end of the lease": {func(p *planted, _ *storetest.Fixture) {
		finish := p.Store.Finish
		p.finish = func(ctx context.Context, tx onereply.Tx, e []store.Ending) ([]store.Verdict, error) {
			v, err := finish(ctx, tx, e)
			for i := range v {
				if r := v[i].Refused; r != nil && r.Why == onereply.WhyExpired {
					v[i].Refused = nil
				}
			}
			return v, err
		}
	}, "guard refuses every write once the lease is over and nobody has taken over"},
	"accepts twice": {func(p *planted, _ *storetest.Fixture) {
		finish := p.Store.Finish
		p.finish = func(ctx context.Context, tx onereply.Tx, e []store.Ending) ([]store.Verdict, error) {
			v, err := finish(ctx, tx, e)
			for i := range v {
				if e[i].Op == store.Accept && v[i].Refused != nil && v[i].Refused.Why == onereply.WhyCompleted {
					v[i].Refused = nil
				}
			}
			return v, err
		}
	}, "accept fills the slot once and the response never changes"},
	"lets a refused key through": {func(p *planted, _ *storetest.Fixture) {
		submit := p.Store.Submit
		p.submit = func(ctx context.Context, tx onereply.Tx, e []store.Submission) ([]store.Submitted, error) {
			v, err := submit(ctx, tx, e)
			for i := range v {
				if v[i].Verdict == store.KeyReused {
					other := e[i]
					other.Key += "-again"
					again, err := submit(ctx, tx, []store.Submission{other})
					if err != nil {
						return nil, err
					}
					v[i] = again[0]
				}
			}
			return v, err
		}
	}, "submit of a known key with other inputs writes nothing"},
	"calls every submission created": {func(p *planted, _ *storetest.Fixture) {
		submit := p.Store.Submit
		p.submit = func(ctx context.Context, tx onereply.Tx, e []store.Submission) ([]store.Submitted, error) {
			v, err := submit(ctx, tx, e)
			for i := range v {
				v[i].Verdict = store.Created
			}
			return v, err
		}
	}, "submit of one key fifty times at once creates one task"},
	"forgets the fenced_out event": {func(p *planted, _ *storetest.Fixture) {
		timeline := p.Store.Timeline
		p.timeline = func(ctx context.Context, scope string, id onereply.TaskID) ([]onereply.Event, error) {
			events, err := timeline(ctx, scope, id)
			return slices.DeleteFunc(events, func(e onereply.Event) bool { return e.Type == onereply.EventFencedOut }), err
		}
	}, "guard refuses an answer that is known to be late"},
	"counts no call": {func(p *planted, _ *storetest.Fixture) {
		record := p.Store.Record
		p.record = func(ctx context.Context, e []store.Record) ([]store.Verdict, error) {
			if len(e) == 1 && e[0].Op == store.CountCall {
				return []store.Verdict{{Call: 1}}, nil
			}
			return record(ctx, e)
		}
	}, "call beyond the budget is refused within the assignment"},
	"commits what failed": {func(p *planted, _ *storetest.Fixture) {
		inTx := p.Store.InTx
		p.inTx = func(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
			var said error
			if err := inTx(ctx, func(ctx context.Context, tx onereply.Tx) error { said = f(ctx, tx); return nil }); err != nil {
				return err
			}
			return said
		}
	}, "transaction that fails leaves nothing"},
	"takes a lost acknowledgement for a success": {func(p *planted, _ *storetest.Fixture) {
		inTx := p.Store.InTx
		p.inTx = func(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
			var said error
			if err := inTx(ctx, func(ctx context.Context, tx onereply.Tx) error { said = f(ctx, tx); return said }); err != nil && said != nil {
				return err
			}
			return nil
		}
	}, "transaction whose acknowledgement is lost is there on reading"},
	"cancels across scopes": {func(p *planted, _ *storetest.Fixture) {
		command := p.Store.Command
		p.command = func(ctx context.Context, tx onereply.Tx, e []store.Command) ([]store.Commanded, error) {
			for i := range e {
				e[i].Scope = "*"
			}
			return command(ctx, tx, e)
		}
	}, "cancel and resume stay within the scope"},
	"adds the allowance at every resume": {func(p *planted, _ *storetest.Fixture) {
		command := p.Store.Command
		p.command = func(ctx context.Context, tx onereply.Tx, e []store.Command) ([]store.Commanded, error) {
			for i := range e {
				e[i].Attempts *= 2
			}
			return command(ctx, tx, e)
		}
	}, "resume reopens a failed task with a fresh allowance"},
	"keeps drafts after the end": {func(p *planted, _ *storetest.Fixture) {
		drafts, kept := p.Store.Drafts, map[onereply.TaskID][]store.Chunk{}
		record := p.Store.Record
		p.record = func(ctx context.Context, e []store.Record) ([]store.Verdict, error) {
			for _, one := range e {
				if one.Op == store.DraftText {
					kept[one.Guard.Task] = append(kept[one.Guard.Task], store.Chunk{Seq: one.Seq, Text: one.Text})
				}
			}
			return record(ctx, e)
		}
		p.drafts = func(ctx context.Context, at []store.Position) ([]store.Draft, error) {
			d, err := drafts(ctx, at)
			for i := range d {
				d[i].Chunks = kept[d[i].Task]
			}
			return d, err
		}
	}, "draft is removed by every end"},
	"hides that a task was spent": {func(p *planted, _ *storetest.Fixture) {
		claim := p.Store.Claim
		p.claim = func(ctx context.Context, c store.Claim) (store.Claimed, error) {
			got, err := claim(ctx, c)
			for i := range got.Assignments {
				got.Assignments[i].Spent = ""
			}
			return got, err
		}
	}, "budget of attempts used up hands the task out as spent, to be failed"},
	"hides the open call from a takeover": {func(p *planted, _ *storetest.Fixture) {
		claim := p.Store.Claim
		p.claim = func(ctx context.Context, c store.Claim) (store.Claimed, error) {
			got, err := claim(ctx, c)
			for i := range got.Assignments {
				got.Assignments[i].OpenCall = nil
			}
			return got, err
		}
	}, "claim of a takeover hands over state and open call"},
	"purges more than its limit": {func(p *planted, _ *storetest.Fixture) {
		purge := p.Store.Purge
		p.purge = func(ctx context.Context, q store.Purge) (store.Purged, error) {
			q.Limit *= 10
			return purge(ctx, q)
		}
	}, "purge removes no more than its limit"},
	"hands out a millisecond before the lease is over": {func(p *planted, f *storetest.Fixture) {
		// The lease that is asked for is the lease that is given, less one.
		claim := p.Store.Claim
		p.claim = func(ctx context.Context, c store.Claim) (store.Claimed, error) {
			c.Lease -= time.Millisecond
			return claim(ctx, c)
		}
		f.Second = p
	}, "claim takes a task over exactly when its lease is over"},
	"hands each task out to both": {func(p *planted, f *storetest.Fixture) {
		// Every claim gives again what some claim gave before.
		var mu sync.Mutex
		var given []store.Assignment
		claim := p.Store.Claim
		p.claim = func(ctx context.Context, c store.Claim) (store.Claimed, error) {
			got, err := claim(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			if len(got.Assignments) > 0 && len(given) > 0 {
				got.Assignments = append(got.Assignments, given[0])
			}
			given = append(given, got.Assignments...)
			return got, err
		}
	}, "claim by two processes at once hands each task out once"},
}

func TestEveryPlantedFaultIsNoticed(t *testing.T) {
	t.Parallel()
	cases := map[string]storetest.Case{}
	for _, c := range storetest.Cases() {
		cases[c.Name] = c
	}
	for name, fault := range faults {
		t.Run("a store that "+name, func(t *testing.T) {
			t.Parallel()
			c, ok := cases[fault.falls]
			if !ok {
				t.Fatalf("no case named %q", fault.falls)
			}
			if failed, said := storetest.Fails(t, c, fixture); failed {
				t.Fatalf("the case falls without the fault: %v", said)
			}
			broken := func(tb testing.TB) storetest.Fixture {
				f := fixture(tb)
				p := plant(f.Store)
				f.Store = p
				fault.plant(p, &f)
				return f
			}
			if failed, _ := storetest.Fails(t, c, broken); !failed {
				t.Errorf("the case %q did not notice", c.Name)
			}
		})
	}
}

// fixture is the SQLite store on a clock that stands still until moved.
func fixture(t testing.TB) storetest.Fixture {
	t.Helper()
	var mu sync.Mutex
	wall, lost := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), false
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return wall
	}
	o := sqlite.Options{
		Migrate: true, Now: now, Elapsed: func() time.Duration { return time.Duration(now().UnixNano()) },
		Faults: &sqlite.Faults{AfterCommit: func() error {
			mu.Lock()
			defer mu.Unlock()
			if lost {
				lost = false
				return context.DeadlineExceeded
			}
			return nil
		}},
	}
	path := filepath.Join(t.TempDir(), "test.db")
	handles := [2]*sqlite.Store{openFile(t, path, o)}
	o.Faults = nil
	handles[1] = openFile(t, path, o)
	if err := handles[0].InTx(t.Context(), func(ctx context.Context, tx onereply.Tx) error {
		_, err := sqlite.Unwrap(tx).ExecContext(ctx, "CREATE TABLE app_rows (name TEXT NOT NULL)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return storetest.Fixture{
		Store: handles[0], Second: handles[1], Now: now,
		Advance: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			wall = wall.Add(d)
		},
		LoseNextCommitAck: func() {
			mu.Lock()
			defer mu.Unlock()
			lost = true
		},
		AddRow: func(ctx context.Context, tx onereply.Tx, name string) error {
			_, err := sqlite.Unwrap(tx).ExecContext(ctx, "INSERT INTO app_rows (name) VALUES (?)", name)
			return err
		},
		Rows: func(ctx context.Context) (n int, err error) {
			err = handles[0].Reader().QueryRowContext(ctx, "SELECT count(*) FROM app_rows").Scan(&n)
			return n, err
		},
	}
}

func openFile(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
