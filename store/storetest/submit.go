package storetest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func submitCases() []Case {
	return []Case{
		{"submit creates a queued task with its budget", submitCreates},
		{"submit of a known key gives the same task as it stands", submitExisting},
		{"submit of a known key with other inputs writes nothing", submitReused},
		{"submit keys are apart by scope and action", submitApart},
		{"submit of a batch gives each entry its verdict", submitBatch},
		{"submit with a delay is due then", submitDelay},
		{"submit of a request without a task keeps the answer", submitAnswer},
		{"submit of one key fifty times at once creates one task", submitStorm},
		{"submit of one key with other inputs at once creates one task", submitRivals},
		{"submit never gives a task id twice", submitSameID},
	}
}

func submitCreates(e *Env) {
	s := e.submission("k")
	s.Deadline = e.Now().Add(time.Hour)
	got := e.submit(s)
	want := onereply.Task{
		ID: s.ID, Kind: kind, Scope: scope, Status: onereply.StatusQueued, RunAt: e.Now(), CreatedAt: e.Now(),
		Budget: onereply.Budget{
			Attempts: onereply.Bound{Max: 3}, Calls: onereply.Bound{Max: 2},
			ElapsedMax: 15 * time.Minute, ElapsedFrom: e.Now(), Deadline: e.Now().Add(time.Hour),
		},
		Policy: s.Rules, Input: s.Input,
	}
	same(e, "submitted", got, store.Submitted{Verdict: store.Created, Task: want})
	same(e, "the task on reading", e.whole(s.ID), want)
}

func submitExisting(e *Env) {
	first := e.submission("k")
	e.submit(first)
	again := first
	again.ID = onereply.TaskID(e.ids.New())
	v := e.submit(again)
	same(e, "verdict while queued", v.Verdict, store.Existing)
	same(e, "task while queued", v.Task.ID, first.ID)
	same(e, "input", string(v.Task.Input), string(first.Input))
	a := e.claim(first.ID)
	same(e, "status while running", e.submit(again).Task.Status, onereply.StatusRunning)
	e.done(accept(a.Guard, `{"text":"hi"}`))
	v = e.submit(again)
	same(e, "verdict after the end", v.Verdict, store.Existing)
	same(e, "status after the end", v.Task.Status, onereply.StatusCompleted)
	same(e, "response after the end", string(v.Task.Response), `{"text":"hi"}`)
	e.onlyTasks(first.ID)
	replays := e.events(first.ID, onereply.EventReplayed)
	if len(replays) != 1 || replays[0].Count != 3 {
		e.Errorf("replays in the timeline: %+v, want one entry that counts 3", replays)
	}
}

// onlyTasks insists that these are all the tasks there are, newest first.
func (e *Env) onlyTasks(ids ...onereply.TaskID) {
	e.Helper()
	all, err := e.Store.Tasks(e.ctx, store.Query{Limit: 1000})
	e.must(err)
	var got []onereply.TaskID
	for _, t := range all {
		got = append(got, t.ID)
	}
	same(e, "the tasks there are", got, ids)
}

func submitReused(e *Env) {
	first := e.submission("k")
	e.submit(first)
	other := e.submission("k")
	other.Fingerprint = []byte("inputs-2")
	before := e.timeline(first.ID)
	same(e, "submitted", e.submit(other), store.Submitted{Verdict: store.KeyReused})
	e.onlyTasks(first.ID)
	same(e, "timeline of the first", e.timeline(first.ID), before)
	same(e, "the first inputs", e.submit(first).Verdict, store.Existing)
}

func submitApart(e *Env) {
	var want []onereply.TaskID
	for _, place := range [][2]string{{scope, action}, {"workspace-b", action}, {scope, "upload"}, {"workspace-b", "upload"}} {
		s := e.submission("k")
		s.Scope, s.Action = place[0], place[1]
		same(e, "verdict in "+place[0]+"/"+place[1], e.submit(s).Verdict, store.Created)
		want = append([]onereply.TaskID{s.ID}, want...)
	}
	e.onlyTasks(want...)
}

func submitBatch(e *Env) {
	known, reused, fresh := e.submission("known"), e.submission("reused"), e.submission("fresh")
	e.submit(known)
	e.submit(reused)
	again, other := known, reused
	again.ID, other.ID = onereply.TaskID(e.ids.New()), onereply.TaskID(e.ids.New())
	other.Fingerprint = []byte("inputs-2")
	v, err := e.trySubmit(e.Store, again, other, fresh)
	e.must(err)
	var verdicts []store.SubmitVerdict
	var tasks []onereply.TaskID
	for _, one := range v {
		verdicts, tasks = append(verdicts, one.Verdict), append(tasks, one.Task.ID)
	}
	same(e, "verdicts", verdicts, []store.SubmitVerdict{store.Existing, store.KeyReused, store.Created})
	same(e, "tasks", tasks, []onereply.TaskID{known.ID, "", fresh.ID})
}

func submitDelay(e *Env) {
	t := e.created(func(s *store.Submission) { s.Delay = 5 * time.Second })
	same(e, "run at", t.RunAt, e.Now().Add(5*time.Second))
	same(e, "assignments at once", len(e.claims()), 0)
	e.Advance(5*time.Second - time.Millisecond)
	same(e, "assignments 1ms before", len(e.claims()), 0)
	e.Advance(time.Millisecond)
	same(e, "assignments when due", len(e.claims()), 1)
}

func submitAnswer(e *Env) {
	s := store.Submission{Scope: scope, Action: "conversation", Key: "k", Fingerprint: []byte("f"), KeyRetention: keep,
		Answer: json.RawMessage(`{"id":"c1"}`)}
	same(e, "first", e.submit(s), store.Submitted{Verdict: store.Created, Answer: json.RawMessage(`{"id":"c1"}`)})
	s.Answer = json.RawMessage(`{"id":"c2"}`)
	same(e, "again", e.submit(s), store.Submitted{Verdict: store.Existing, Answer: json.RawMessage(`{"id":"c1"}`)})
	s.Fingerprint = []byte("g")
	same(e, "other inputs", e.submit(s), store.Submitted{Verdict: store.KeyReused})
	e.Advance(keep)
	same(e, "when expired", e.submit(s), store.Submitted{Verdict: store.Created, Answer: json.RawMessage(`{"id":"c2"}`)})
	e.onlyTasks()
}

func submitStorm(e *Env) {
	const n = 50
	verdicts, errs := make([]store.Submitted, n), make([]error, n)
	together(n, func(i int) {
		s := e.submission("k")
		handle := e.Store
		if i%2 == 1 {
			handle = e.Second
		}
		v, err := e.trySubmit(handle, s)
		if errs[i] = err; err == nil {
			verdicts[i] = v[0]
		}
	})
	e.must(errors.Join(errs...))
	created := 0
	for _, v := range verdicts {
		if v.Verdict == store.Created {
			created++
		}
		same(e, "everyone's task", v.Task.ID, verdicts[0].Task.ID)
	}
	same(e, "created", created, 1)
	e.onlyTasks(verdicts[0].Task.ID)
	replays := e.events(verdicts[0].Task.ID, onereply.EventReplayed)
	if len(replays) != 1 || replays[0].Count != n-1 {
		e.Errorf("replays in the timeline: %+v, want one entry that counts %d", replays, n-1)
	}
}

func submitRivals(e *Env) {
	const n = 20
	verdicts, errs := make([]store.Submitted, n), make([]error, n)
	together(n, func(i int) {
		s := e.submission("k")
		s.Fingerprint = []byte{byte(i)}
		handle := e.Store
		if i%2 == 1 {
			handle = e.Second
		}
		v, err := e.trySubmit(handle, s)
		if errs[i] = err; err == nil {
			verdicts[i] = v[0]
		}
	})
	e.must(errors.Join(errs...))
	count := map[store.SubmitVerdict]int{}
	for _, v := range verdicts {
		count[v.Verdict]++
	}
	same(e, "verdicts", count, map[store.SubmitVerdict]int{store.Created: 1, store.KeyReused: n - 1})
}

func submitSameID(e *Env) {
	first, second := e.submission("k1"), e.submission("k2")
	second.ID = first.ID
	e.submit(first)
	if v, err := e.trySubmit(e.Store, second); !errors.Is(err, onereply.ErrInvalid) {
		e.Errorf("second task of one id: %+v, %v; want an error matching ErrInvalid", v, err)
	}
	e.onlyTasks(first.ID)
	second.ID = onereply.TaskID(e.ids.New())
	same(e, "the key afterwards", e.submit(second).Verdict, store.Created)
}
