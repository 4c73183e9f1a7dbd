package storetest

import (
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

func draftCases() []Case {
	return []Case{
		{"draft is read from any position", draftPositions},
		{"draft of a new version starts over", draftVersions},
		{"draft is removed by every end", draftRemoved},
		{"draft chunk that is sent again stays one", draftAgain},
	}
}

func (e *Env) drafts(positions ...store.Position) []store.Draft {
	e.Helper()
	got, err := e.Store.Drafts(e.ctx, positions)
	e.must(err)
	return got
}

func draftText(g onereply.Guard, seq int64, text string) store.Record {
	return store.Record{Guard: g, Op: store.DraftText, Seq: seq, Text: text}
}

func draftPositions(e *Env) {
	a := e.running()
	id := a.Task.ID
	queued := e.created().ID
	e.records(draftText(a.Guard, 1, "one "), draftText(a.Guard, 2, "two "), draftText(a.Guard, 3, "thrée"))
	all := []store.Chunk{{Seq: 1, Text: "one "}, {Seq: 2, Text: "two "}, {Seq: 3, Text: "thrée"}}
	state := func(chunks []store.Chunk) store.Draft {
		return store.Draft{Task: id, Found: true, Status: onereply.StatusRunning, Version: 1, Chunks: chunks}
	}
	same(e, "drafts", e.drafts(
		store.Position{Task: id}, store.Position{Task: id, Version: 1}, store.Position{Task: id, Version: 1, Seq: 2},
		store.Position{Task: id, Version: 1, Seq: 3}, store.Position{Task: "no-such-task"}, store.Position{Task: queued},
		store.Position{Task: id, Version: 7, Seq: 2},
	), []store.Draft{
		state(all), state(all), state(all[2:]), state(nil), {Task: "no-such-task"},
		{Task: queued, Found: true, Status: onereply.StatusQueued}, state(all),
	})
}

func draftVersions(e *Env) {
	a := e.running()
	e.record(draftText(a.Guard, 1, "old"))
	e.Advance(lease)
	b := e.claim(a.Task.ID)
	at := store.Position{Task: a.Task.ID, Version: 1, Seq: 1}
	same(e, "after the takeover", e.drafts(at)[0], store.Draft{Task: a.Task.ID, Found: true, Status: onereply.StatusRunning, Version: 2})
	e.record(draftText(b.Guard, 1, "new"))
	same(e, "with text", e.drafts(at)[0].Chunks, []store.Chunk{{Seq: 1, Text: "new"}})
	e.refused("the zombie's draft", e.records(draftText(a.Guard, 2, "zombie"))[0], onereply.WhyTakenOver)
	same(e, "afterwards", e.drafts(at)[0].Chunks, []store.Chunk{{Seq: 1, Text: "new"}})
	e.done(retry(b.Guard, time.Minute))
	got := e.drafts(store.Position{Task: a.Task.ID, Version: 2, Seq: 1})[0]
	same(e, "status after a retry", got.Status, onereply.StatusQueued)
	same(e, "chunks after a retry", len(got.Chunks), 0)
}

func draftRemoved(e *Env) {
	for _, end := range []func(store.Assignment){
		func(a store.Assignment) { e.done(accept(a.Guard, `{}`)) },
		func(a store.Assignment) { e.done(fail(a.Guard)) },
		func(a store.Assignment) { e.command(store.Command{Op: store.Cancel, Scope: scope, Task: a.Task.ID}) },
	} {
		a := e.running()
		e.record(draftText(a.Guard, 1, "so far"))
		end(a)
		got := e.drafts(store.Position{Task: a.Task.ID})[0]
		same(e, "ended", got.Status.Ended(), true)
		same(e, "chunks of an ended task", len(got.Chunks), 0)
	}
	failed := e.running()
	e.record(draftText(failed.Guard, 1, "old"))
	e.done(fail(failed.Guard))
	e.command(store.Command{Op: store.Resume, Scope: scope, Task: failed.Task.ID, Attempts: 1})
	same(e, "chunks after a resume", len(e.drafts(store.Position{Task: failed.Task.ID})[0].Chunks), 0)
}

func draftAgain(e *Env) {
	a := e.running()
	e.LoseNextCommitAck()
	if _, err := e.Store.Record(e.ctx, []store.Record{draftText(a.Guard, 1, "text")}); err == nil {
		e.Error("a lost acknowledgement was no error")
	}
	e.record(draftText(a.Guard, 1, "text"))
	same(e, "chunks", e.drafts(store.Position{Task: a.Task.ID})[0].Chunks, []store.Chunk{{Seq: 1, Text: "text"}})
}
