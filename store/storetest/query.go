package storetest

import (
	"context"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func queryCases() []Case {
	return []Case{
		{"query by ids keeps their order and leaves out what is not there", queryIDs},
		{"query by filter is newest first", queryFilter},
		{"query pages without a gap or a repeat", queryPages},
		{"query without whole leaves out what is large", queryWhole},
		{"stats count tasks by status", queryStats},
		{"watch hints at commits of both processes", queryWatch},
	}
}

func (e *Env) query(q store.Query) []onereply.TaskID {
	e.Helper()
	all, err := e.Store.Tasks(e.ctx, q)
	e.must(err)
	var ids []onereply.TaskID
	for _, t := range all {
		ids = append(ids, t.ID)
	}
	return ids
}

func queryIDs(e *Env) {
	a, b, c := e.created().ID, e.created().ID, e.created().ID
	same(e, "ids", e.query(store.Query{IDs: []onereply.TaskID{c, "no-such-task", a, b}}), []onereply.TaskID{c, a, b})
	same(e, "none there", len(e.query(store.Query{IDs: []onereply.TaskID{"no-such-task"}})), 0)
}

func queryFilter(e *Env) {
	other := func(s *store.Submission) { s.Scope = "workspace-b" }
	index := func(s *store.Submission) { s.Kind = "index" }
	a, b, c, d := e.created().ID, e.created(other).ID, e.created(index).ID, e.created().ID
	e.claim(d)
	for name, want := range map[string]struct {
		q   store.Query
		ids []onereply.TaskID
	}{
		"any":                 {store.Query{}, []onereply.TaskID{d, c, b, a}},
		"scope":               {store.Query{Scope: scope}, []onereply.TaskID{d, c, a}},
		"kind":                {store.Query{Kind: "index"}, []onereply.TaskID{c}},
		"status":              {store.Query{Status: onereply.StatusQueued}, []onereply.TaskID{c, b, a}},
		"all":                 {store.Query{Scope: scope, Status: onereply.StatusQueued, Kind: kind}, []onereply.TaskID{a}},
		"nothing":             {store.Query{Scope: "workspace-c"}, nil},
		"scope is no pattern": {store.Query{Scope: "*"}, nil},
	} {
		want.q.Limit = 10
		same(e, name, e.query(want.q), want.ids)
	}
}

func queryPages(e *Env) {
	var want []onereply.TaskID
	for range 7 {
		want = append([]onereply.TaskID{e.created().ID}, want...)
	}
	var got []onereply.TaskID
	for q := (store.Query{Scope: scope, Limit: 3}); ; q.After = got[len(got)-1] {
		page := e.query(q)
		if len(page) > 3 {
			e.Fatalf("a page of %d with a limit of 3", len(page))
		}
		got = append(got, page...)
		if len(page) < 3 {
			break
		}
	}
	same(e, "pages", got, want)
}

func queryWhole(e *Env) {
	a := e.running()
	e.done(accept(a.Guard, `{"text":"hi"}`))
	all, err := e.Store.Tasks(e.ctx, store.Query{IDs: []onereply.TaskID{a.Task.ID}})
	e.must(err)
	if len(all) != 1 || all[0].Input != nil || all[0].Response != nil || all[0].Attempts != nil {
		e.Errorf("not whole: %+v", all)
	}
	t := e.whole(a.Task.ID)
	same(e, "input", string(t.Input), `{"text":"hello"}`)
	same(e, "response", string(t.Response), `{"text":"hi"}`)
	same(e, "attempts", len(t.Attempts), 1)
}

func queryStats(e *Env) {
	stats := func() store.Stats {
		got, err := e.Store.Stats(e.ctx)
		e.must(err)
		return got
	}
	same(e, "empty", stats(), store.Stats{ByStatus: map[onereply.Status]int{}})
	e.created()
	e.Advance(3 * time.Second)
	e.created()
	e.created(func(s *store.Submission) { s.Delay = time.Hour })
	done, failed, cancelled := e.running(), e.running(), e.running()
	e.done(accept(done.Guard, `{}`))
	e.done(fail(failed.Guard))
	e.command(store.Command{Op: store.Cancel, Scope: scope, Task: cancelled.Task.ID})
	e.running()
	want := store.Stats{
		ByStatus: map[onereply.Status]int{onereply.StatusQueued: 3, onereply.StatusRunning: 1, onereply.StatusCompleted: 1,
			onereply.StatusFailed: 1, onereply.StatusCancelled: 1},
		OldestWaiting: 3 * time.Second,
	}
	same(e, "stats", stats(), want)
	e.Advance(lease)
	want.OldestWaiting, want.Expired = 3*time.Second+lease, 1
	same(e, "after the lease", stats(), want)
}

func queryWatch(e *Env) {
	ctx, cancel := context.WithCancel(e.ctx)
	hints, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		done <- e.Store.Watch(ctx, func() {
			select {
			case hints <- struct{}{}:
			default:
			}
		})
	}()
	// A hint may be lost, so commit until one comes; none at all is the fault.
	for name, handle := range map[string]store.Store{"this process": e.Store, "another process": e.Second} {
		select {
		case <-hints:
		default:
		}
		deadline, tick := time.After(20*time.Second), time.NewTicker(100*time.Millisecond)
		for hinted := false; !hinted; {
			_, err := e.trySubmit(handle, e.submission(e.ids.New()))
			e.must(err)
			select {
			case <-hints:
				hinted = true
			case <-tick.C:
			case <-deadline:
				e.Fatalf("no hint of a commit by %s", name)
			}
		}
		tick.Stop()
	}
	cancel()
	if err := <-done; err != nil {
		e.Errorf("Watch returned %v after its context ended, want nil", err)
	}
}
