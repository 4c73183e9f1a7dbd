package onereplytest

import (
	"errors"
	"fmt"
	"sync"
	"testing/synctest"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
)

func anotherKey(r *trial) {
	r.start("worker")
	first, second := r.submit(0, "first press"), r.submit(0, "second press")
	if first == second {
		r.t.Errorf("two keys gave one task, %s: pressing Regenerate would do nothing", first)
	}
	r.completes(first)
	r.completes(second)
}

func submitRolledBack(r *trial) {
	front := r.front()
	front.RollBack(1)
	s := r.submission(0, "key")
	if done, err := front.Engine.Submit(r.t.Context(), s); !errors.Is(err, onereply.ErrUnavailable) {
		r.t.Errorf("a submission that was rolled back gave %+v, %v", done, err)
	}
	r.rows() // what the hook left has no task to belong to
	id := r.send(r.submission(0, "key"))
	r.start("worker")
	r.completes(id)
}

func submitAnswerLost(r *trial) {
	front := r.front()
	front.LoseAnswers(1)
	id := r.send(r.submission(0, "key"))
	again, err := front.Engine.Submit(r.t.Context(), r.submission(0, "key"))
	if err != nil || again.Created || again.Task.ID != id {
		r.t.Errorf("submitted again, the key gave task %s (created: %t, %v); it named %s", again.Task.ID, again.Created, err, id)
	}
	r.start("worker")
	r.completes(id)
}

func submitAtOnce(r *trial) {
	doors := []*Process{r.front(), r.Start(engine.Options{Name: "second front", Workers: -1, Sweep: -1}, r.c.Kind)}
	r.start("worker")
	var wg sync.WaitGroup
	var mu sync.Mutex
	created := 0
	for n := range 50 {
		s := r.submission(0, "key")
		wg.Go(func() {
			done, err := doors[n%2].Engine.Submit(r.t.Context(), s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.t.Errorf("press %d of 50: %v", n, err)
				return
			}
			if r.created[done.Task.ID] = true; done.Created {
				created++
			}
		})
	}
	wg.Wait()
	if created != 1 || len(r.created) != 1 {
		r.t.Errorf("fifty presses under one key: %d were told that they created a task, and they were told of %d tasks", created, len(r.created))
	}
	for id := range r.created {
		r.completes(id)
	}
}

// together is how many tasks share a transaction.
const together = 8

// submitTogether holds the first submission until the others wait, so that they
// go into one transaction and the hook is given all of them.
func submitTogether(r *trial) {
	hold := r.front().HoldAt(Accepting)
	ids := make(chan onereply.TaskID, together)
	for i := range together {
		s := r.submission(i, fmt.Sprint("key ", i))
		go func() {
			done, err := r.front().Engine.Submit(r.t.Context(), s)
			if err != nil {
				r.t.Errorf("submission %d of %d at once: %v", i+1, together, err)
			}
			ids <- done.Task.ID
		}()
	}
	hold.Wait()
	synctest.Wait()
	hold.Release()
	for range together {
		if id := <-ids; id != "" {
			r.created[id] = true
		}
	}
	r.start("worker")
	for id := range r.created {
		r.completes(id)
	}
}

// acceptTogether does the same with the ends of tasks, and rolls so many of the
// transactions back.
func acceptTogether(rollBacks int) func(*trial) {
	return func(r *trial) {
		for i := range together {
			r.submit(i, fmt.Sprint("key ", i))
		}
		worker := r.start("worker")
		hold := worker.HoldAt(Accepting)
		hold.Wait()
		synctest.Wait()
		worker.RollBack(rollBacks)
		hold.Release()
		for id := range r.created {
			r.completes(id)
		}
	}
}
