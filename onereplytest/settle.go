package onereplytest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// settle lets everyone who came late arrive, then checks what the engine
// promises and what the kind's hooks have left.
func (r *trial) settle() {
	if r.t.Skipped() {
		return
	}
	r.mu.Lock()
	processes := slices.Clone(r.processes)
	r.mu.Unlock()
	for _, p := range processes {
		p.letGo()
	}
	r.pause(2 * time.Minute)
	tasks := r.tasks()
	r.stayed(tasks)
	for _, t := range tasks {
		r.promised(t)
	}
	if len(tasks) != len(r.created) {
		r.t.Errorf("there are %d tasks, and %d keys were submitted", len(tasks), len(r.created))
	}
	r.counted(tasks)
	r.rows()
	if r.c.Check != nil {
		r.c.Check(r.t, Snapshot{Boundary: r.name, Tasks: tasks, DB: r.DB()})
	}
}

// tasks reads every task there is, whole.
func (r *trial) tasks() []onereply.Task {
	r.t.Helper()
	tasks, err := r.Store.Tasks(r.t.Context(), store.Query{Kind: r.c.Kind.Name, Limit: 1000, Whole: true})
	if err != nil {
		r.t.Fatalf("reading all tasks: %v", err)
	}
	return tasks
}

// stayed compares the tasks with what they were when they ended (P3).
func (r *trial) stayed(tasks []onereply.Task) {
	for i, id := range r.early {
		for _, t := range tasks {
			if was := r.outcome[i]; t.ID == id && (t.Status != was.Status || !bytes.Equal(t.Response, was.Response)) {
				r.t.Errorf("task %s changed after its end: it was %s with response %s, it is %s with response %s",
					id, was.Status, was.Response, t.Status, t.Response)
			}
		}
	}
}

// promised checks one task.
func (r *trial) promised(t onereply.Task) {
	b := t.Budget
	switch {
	case !t.Status.Ended():
		r.t.Errorf("task %s is still %s", t.ID, t.Status)
	case (t.Status == onereply.StatusCompleted) != (t.Response != nil):
		r.t.Errorf("task %s is %s and its response is %q", t.ID, t.Status, t.Response)
	}
	if b.Calls.Used > b.Calls.Max || b.Attempts.Used > b.Attempts.Max {
		r.t.Errorf("task %s used %d of %d calls and %d of %d attempts", t.ID, b.Calls.Used, b.Calls.Max, b.Attempts.Used, b.Attempts.Max)
	}
	accepted := 0
	for _, a := range t.Attempts {
		if a.Outcome == "" {
			r.t.Errorf("task %s has ended and its attempt %s (%s) has not", t.ID, a.ID, a.Worker)
		}
		if a.Outcome == onereply.OutcomeAccepted {
			accepted++
		}
	}
	if accepted > 1 || accepted > 0 && t.Status != onereply.StatusCompleted {
		r.t.Errorf("task %s is %s and %d of its attempts were accepted", t.ID, t.Status, accepted)
	}
}

// counted compares what reached the provider with what was counted (P8).
func (r *trial) counted(tasks []onereply.Task) {
	calls := 0
	for _, t := range tasks {
		calls += t.Budget.Calls.Used
	}
	if sent := r.Provider.Requests(); sent > calls {
		r.t.Errorf("%s reached the provider and %s counted: Work sends outside Attempt.Call, or more than once in it", plural(sent, "request"), plural(calls, "call"))
	}
}

// rows compares what the hooks left with the runs of them that were committed.
func (r *trial) rows() {
	r.t.Helper()
	r.hookRows(createdHook, r.c.Created, func(onereply.Status) bool { return true })
	r.hookRows(endedHook, r.c.Ended, func(s onereply.Status) bool { return slices.Contains(r.c.EndedOn, s) })
}

func (r *trial) hookRows(hook hookName, rows Rows, leaves func(onereply.Status) bool) {
	r.t.Helper()
	committed, err := r.committed(r.t.Context(), hook)
	if err != nil {
		r.t.Fatalf("reading which hooks were committed: %v", err)
	}
	known := map[onereply.TaskID]bool{}
	for _, t := range r.tasks() {
		known[t.ID] = true
		if hook == createdHook && len(committed[t.ID]) != 1 {
			r.t.Errorf("the Created hook of task %s was committed %d times", t.ID, len(committed[t.ID]))
		}
		if hook == endedHook && t.Status.Ended() && !slices.Contains(committed[t.ID], t.Status) {
			r.t.Errorf("task %s is %s and no Ended hook of it was committed with that", t.ID, t.Status)
		}
	}
	if rows == nil {
		return
	}
	found, err := rows(r.t.Context(), r.DB())
	if err != nil {
		r.t.Fatalf("finding the rows of the %s hook: %v", hook, err)
	}
	count := map[onereply.TaskID]int{}
	for _, id := range found {
		count[id]++
	}
	for id := range known {
		want := 0
		for _, s := range committed[id] {
			if leaves(s) {
				want++
			}
		}
		r.judge(hook, id, count[id], want, committed[id])
	}
	for id, n := range count {
		if !known[id] {
			r.t.Errorf("%s: %s for task %q, and there is no such task: the row does not carry the task's id, or the hook wrote outside the transaction it was given, which was rolled back",
				hook, plural(n, "row"), id)
		}
	}
}

// judge says in words what is wrong with the rows of one task.
func (r *trial) judge(hook hookName, id onereply.TaskID, got, want int, committed []onereply.Status) {
	r.t.Helper()
	if got == want {
		return
	}
	told := r.story(id)
	facts := fmt.Sprintf("task %s has %s, want %d; the hook ran %s for it, of which %d committed, and Work ran %s",
		id, plural(got, "row"), want, times(told.runs[hook]), len(committed), times(told.works))
	switch {
	case got < want:
		r.t.Errorf("%s: a row was lost: %s. Does the hook handle every entry it is given, under the task's id?", hook, facts)
	case got == told.runs[hook] && told.runs[hook] > len(committed):
		r.t.Errorf("%s: rows were doubled: %s. A run that was rolled back left its row: the hook writes outside the transaction it is given", hook, facts)
	case hook == endedHook && told.works > 0 && want < got && told.runs[hook] <= len(committed):
		r.t.Errorf("%s: rows were doubled: %s. Either the hook writes more than once, or Work saves by itself: only the hook may", hook, facts)
	default:
		r.t.Errorf("%s: rows were doubled: %s", hook, facts)
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
