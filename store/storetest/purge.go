package storetest

import (
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func purgeCases() []Case {
	return []Case{
		{"purge removes keys when their retention is over", purgeKeys},
		{"purge removes tasks when their retention is over and no key names them", purgeTasks},
		{"purge removes no more than its limit", purgeLimit},
		{"purge leaves a key that is kept beside one that is over", purgeNeighbour},
	}
}

func (e *Env) purge(p store.Purge) store.Purged {
	e.Helper()
	got, err := e.Store.Purge(e.ctx, p)
	e.must(err)
	return got
}

func purgeKeys(e *Env) {
	s := e.submission("k")
	e.submit(s)
	e.done(accept(e.claim(s.ID).Guard, `{}`))
	all := store.Purge{TaskRetention: 100 * keep, Limit: 10}
	same(e, "at once", e.purge(all), store.Purged{})
	e.Advance(keep - time.Millisecond)
	same(e, "1ms before", e.purge(all), store.Purged{})
	e.Advance(time.Millisecond)
	same(e, "when over", e.purge(all), store.Purged{Keys: 1})
	same(e, "again", e.purge(all), store.Purged{})
	e.onlyTasks(s.ID)
	again := s
	again.ID = onereply.TaskID(e.ids.New())
	same(e, "the key afterwards", e.submit(again).Verdict, store.Created)
}

func purgeTasks(e *Env) {
	s := e.submission("k")
	e.submit(s)
	a := e.claim(s.ID)
	e.records(store.Record{Guard: a.Guard, Op: store.CountCall}, draftText(a.Guard, 1, "x"))
	p := store.Purge{TaskRetention: keep / 2, Limit: 10}
	e.Advance(10 * time.Second)
	e.done(accept(a.Guard, `{}`))
	e.Advance(keep / 2)
	same(e, "while its key is kept", e.purge(p), store.Purged{})
	e.Advance(keep)
	running := e.running()
	e.Advance(10 * keep)
	p.TaskRetention = 11*keep + keep/2 + time.Millisecond
	same(e, "1ms before its retention is over", e.purge(p), store.Purged{Keys: 1})
	p.TaskRetention -= time.Millisecond
	same(e, "when over", e.purge(p), store.Purged{Tasks: 1})
	e.onlyTasks(running.Task.ID)
	same(e, "timeline of the purged", len(e.timeline(s.ID)), 0)
	e.refused("a very late answer", e.finish(accept(a.Guard, `{}`)), onereply.WhyGone)
}

func purgeNeighbour(e *Env) {
	var keys []store.Submission
	for _, key := range []string{"old", "young"} {
		s := e.submission(key)
		e.submit(s)
		e.done(accept(e.claim(s.ID).Guard, `{}`))
		keys = append(keys, s)
		e.Advance(keep / 2)
	}
	same(e, "purged", e.purge(store.Purge{TaskRetention: 100 * keep, Limit: 10}), store.Purged{Keys: 1})
	again := keys[1]
	again.ID = onereply.TaskID(e.ids.New())
	same(e, "the young key", e.submit(again).Verdict, store.Existing)
}

func purgeLimit(e *Env) {
	for range 5 {
		e.done(accept(e.running().Guard, `{}`))
	}
	e.Advance(keep)
	p := store.Purge{TaskRetention: keep, Limit: 2}
	total := store.Purged{}
	for range 10 {
		got := e.purge(p)
		if got.Keys > 2 || got.Tasks > 2 {
			e.Errorf("purged %+v with a limit of 2", got)
		}
		total.Keys, total.Tasks = total.Keys+got.Keys, total.Tasks+got.Tasks
		if !got.More {
			break
		}
	}
	same(e, "purged in all", total, store.Purged{Keys: 5, Tasks: 5})
	e.onlyTasks()
}
