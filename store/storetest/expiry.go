package storetest

import (
	"errors"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func expiryCases() []Case {
	return []Case{
		{"key of an ended task is kept until its retention is over to the millisecond", expiryExact},
		{"key of a task that has not ended never expires", expiryWaits},
		{"key is judged by the database's time whatever a purge does", expiryPurge},
	}
}

func expiryExact(e *Env) {
	first := e.submission("k")
	e.submit(first)
	e.done(accept(e.claim(first.ID).Guard, `{}`))
	second := e.submission("k")
	second.Fingerprint = []byte("inputs-2")
	e.Advance(keep - time.Millisecond)
	same(e, "other inputs 1ms before", e.submit(second).Verdict, store.KeyReused)
	same(e, "same inputs 1ms before", e.submit(first).Verdict, store.Existing)
	e.Advance(time.Millisecond)
	v := e.submit(second)
	same(e, "other inputs when over", v.Verdict, store.Created)
	same(e, "task when over", v.Task.ID, second.ID)
	first.ID = onereply.TaskID(e.ids.New())
	same(e, "first inputs afterwards", e.submit(first).Verdict, store.KeyReused)
}

func expiryWaits(e *Env) {
	s := e.submission("k")
	e.submit(s)
	e.Advance(10 * keep)
	same(e, "while queued", e.submit(s).Verdict, store.Existing)
	a := e.claim(s.ID)
	same(e, "while running", e.submit(s).Verdict, store.Existing)
	p, err := e.Store.Purge(e.ctx, store.Purge{Limit: 10})
	e.must(err)
	same(e, "purged while running", p, store.Purged{})
	e.done(fail(a.Guard))
	again := s
	again.ID = onereply.TaskID(e.ids.New())
	same(e, "once ended", e.submit(again).Verdict, store.Created)
	e.onlyTasks(again.ID, s.ID)
}

func expiryPurge(e *Env) {
	s := e.submission("k")
	e.submit(s)
	e.done(accept(e.claim(s.ID).Guard, `{}`))
	e.Advance(keep - time.Millisecond)
	const n = 40
	errs := make([]error, n)
	created := make([]bool, n)
	together(n, func(i int) {
		if i%4 == 0 {
			_, errs[i] = e.Second.Purge(e.ctx, store.Purge{Limit: 10})
			return
		}
		again := e.submission("k")
		v, err := e.trySubmit(e.Store, again)
		errs[i] = err
		created[i] = err == nil && v[0].Verdict != store.Existing
	})
	e.must(errors.Join(errs...))
	for i := range created {
		if created[i] {
			e.Errorf("replay %d of an unexpired key did not find its task", i)
		}
	}
	e.onlyTasks(s.ID)
}
