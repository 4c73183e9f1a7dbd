package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onereply/onereply/store"
)

// together runs n calls of f at once and waits for them.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// tally counts answers by status and collects the tasks they name.
type tally struct {
	mu     sync.Mutex
	status map[int]int
	tasks  map[string]bool
	faults []string
}

func newTally() *tally { return &tally{status: map[int]int{}, tasks: map[string]bool{}} }

func (y *tally) add(r response, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err != nil {
		y.faults = append(y.faults, err.Error())
		return
	}
	y.status[r.status]++
	if r.doc.Task != nil {
		y.tasks[r.doc.Task.ID] = true
	}
}

func (y *tally) check(t *testing.T, want map[int]int, tasks int) {
	t.Helper()
	if len(y.faults) > 0 {
		t.Errorf("%d requests failed: %s", len(y.faults), y.faults[0])
	}
	if fmt.Sprint(y.status) != fmt.Sprint(want) {
		t.Errorf("answers %v, want %v", y.status, want)
	}
	if len(y.tasks) != tasks {
		t.Errorf("%d tasks were named, want %d", len(y.tasks), tasks)
	}
}

// Rows 4 and 5: a race has no loser.
func TestTheSameRequestAtOnceIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		servers int
		at      int
	}{
		{"two requests", 1, 2},
		{"a hundred requests on one server", 1, 100},
		{"a hundred requests on two servers that share the file", 2, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			worlds := []*world{newWorld(t, setup{workers: 2})}
			for len(worlds) < c.servers {
				worlds = append(worlds, newWorld(t, setup{workers: 2, path: worlds[0].path}))
			}
			path := "POST /v1/conversations/" + worlds[0].conversation("alice") + "/messages"
			got := newTally()
			together(c.at, func(i int) {
				got.add(worlds[i%c.servers].trySend(t.Context(), request{do: path, key: key("K"), body: hello}))
			})
			got.check(t, map[int]int{202: 1, 200: c.at - 1}, 1)
			for task := range got.tasks {
				worlds[0].ended(task)
			}
			if left := worlds[0].counts(); left != (counts{1, 2, 1}) {
				t.Errorf("left %+v", left)
			}
			calls := 0
			for _, w := range worlds {
				calls += int(w.model.calls.Load())
			}
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// Row 6: of many bodies under one key one wins, and the losers leave no row.
func TestOneKeyWithManyBodiesAtOnceIsOneOfThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	got := newTally()
	together(40, func(i int) {
		got.add(w.trySend(t.Context(), request{do: path, key: key("K"), body: fmt.Sprintf(`{"text":"text %d"}`, i)}))
	})
	got.check(t, map[int]int{202: 1, 422: 39}, 1)
	if left := w.counts(); left != (counts{1, 1, 1}) {
		t.Errorf("left %+v", left)
	}
}

func TestOneConversationKeyAtOnceMakesOneConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	ids, status := make([]string, 40), make([]int, 40)
	together(40, func(i int) {
		r, err := w.trySend(t.Context(), request{do: "POST /v1/conversations", key: key("C"), body: `{}`})
		if err != nil {
			t.Error(err)
		}
		ids[i], status[i] = r.doc.ID, r.status
	})
	slices.Sort(ids)
	slices.Sort(status)
	if len(slices.Compact(ids)) != 1 || status[38] != 200 || status[39] != 201 {
		t.Errorf("%v %v", ids, status)
	}
	var all struct{ n int }
	if err := w.store.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM conversations").Scan(&all.n); err != nil || all.n != 1 {
		t.Errorf("%d conversations, %v", all.n, err)
	}
}

// Row 43: a cancel that races replays leaves one cancelled task.
func TestCancelRacingReplays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	task := w.send(request{do: path, key: key("K"), body: hello}).doc.Task.ID
	got := newTally()
	together(30, func(i int) {
		if i%3 == 0 {
			r, err := w.trySend(t.Context(), request{do: "POST /v1/tasks/" + task + "/cancel"})
			if err != nil || r.status != 200 || r.doc.Status != "cancelled" {
				t.Errorf("cancel: %d %s %v", r.status, r.body, err)
			}
			return
		}
		got.add(w.trySend(t.Context(), request{do: path, key: key("K"), body: hello}))
	})
	got.check(t, map[int]int{200: 20}, 1)
	if r := w.send(request{do: path, key: key("K"), body: hello}); r.doc.Task.Status != "cancelled" {
		t.Errorf("in the end %s", r.body)
	}
	if left := w.counts(); left != (counts{1, 1, 1}) {
		t.Errorf("left %+v", left)
	}
}

// Row 63: purging during a storm of replays never lets an unexpired key be
// forgotten.
func TestPurgeDuringAStormOfReplays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{workers: 2})
	path := "POST /v1/conversations/" + w.conversation("alice") + "/messages"
	w.ended(w.send(request{do: path, key: key("K"), body: hello}).doc.Task.ID)
	storm, over := context.WithCancel(t.Context())
	var purging sync.WaitGroup
	purging.Go(func() {
		for storm.Err() == nil {
			// No time at all is kept of ended tasks: only their keys hold them.
			if _, err := w.store.Purge(t.Context(), store.Purge{TaskRetention: 0, Limit: 100}); err != nil {
				t.Errorf("purge: %v", err)
				return
			}
		}
	})
	got := newTally()
	together(20, func(int) {
		for range 10 {
			got.add(w.trySend(t.Context(), request{do: path, key: key("K"), body: hello}))
		}
	})
	over()
	purging.Wait()
	got.check(t, map[int]int{200: 200}, 1)
	if left := w.counts(); left != (counts{1, 2, 1}) {
		t.Errorf("left %+v", left)
	}
}

// Row 36 once more, to the letter: a refused credential's answer is the same
// for a known and an unknown key, and for things that are there and not.
func TestARefusedCredentialLearnsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	c := w.conversation("alice")
	path := "POST /v1/conversations/" + c + "/messages"
	task := w.send(request{do: path, key: key("K"), body: hello}).doc.Task.ID
	var bodies []string
	for _, q := range []request{
		{do: path, key: key("K"), body: hello}, {do: path, key: key("L"), body: hello}, {do: path, body: "{"},
		{do: "GET /v1/tasks/" + task}, {do: "GET /v1/tasks/01890000-0000-7000-8000-00000000000a"}, {do: "GET /v1/nowhere"},
		{do: "GET /v1/conversations/" + c}, {do: "GET /v1/tasks/" + task + "/events"},
	} {
		q.as = "mallory"
		r := w.send(q)
		if r.status != http.StatusUnauthorized || strings.Contains(r.body, task) {
			t.Errorf("%s: %d %s", q.do, r.status, r.body)
		}
		bodies = append(bodies, r.body)
	}
	if slices.Sort(bodies); len(slices.Compact(bodies)) != 1 {
		t.Errorf("the answers differ: %q", bodies)
	}
}
