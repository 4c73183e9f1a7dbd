package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

const (
	// draftPace is the shortest time between two writes of draft text. The first
	// text after a pause is written at once.
	draftPace = 10 * time.Millisecond
	// draftLimit bounds the text an attempt may have waiting while the store is
	// slow; beyond it Draft waits.
	draftLimit = 1 << 20
)

// draftBuffer is the live text of an attempt that is not durable yet. It is
// guarded by the attempt's mutex.
type draftBuffer struct {
	waiting strings.Builder
	flying  string // the chunk being written; kept until its write is known
	seq     int64  // of the flying chunk, or the last one written
	room    signal // set when text was written
	mute    bool   // a chunk was refused: nothing more will be taken
}

// Draft appends to the live text. It returns at once unless far more text waits
// than the store takes.
func (a *attempt) Draft(ctx context.Context, delta string) error {
	if err := context.Cause(a.ctx); err != nil {
		return err
	}
	if strings.ContainsRune(delta, 0) {
		delta = strings.ReplaceAll(delta, "\x00", "")
	}
	for {
		a.mu.Lock()
		a.sign = time.Now()
		if a.text.waiting.Len() < draftLimit {
			a.text.waiting.WriteString(delta)
			a.mu.Unlock()
			a.e.drafted.set()
			return nil
		}
		if a.text.room == nil {
			a.text.room = newSignal()
		}
		room := a.text.room
		a.mu.Unlock()
		select {
		case <-room:
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// writeDrafts writes the waiting text of all attempts in shared batches until
// ctx ends. What was written is given to this process's readers at once; other
// processes learn of it from the store. Losing draft text loses no promise, so a
// store that cannot be reached only delays it.
func (e *Engine) writeDrafts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.drafted:
		}
		wait := draftPace
		if err := e.writeDraftsOnce(ctx); err != nil && ctx.Err() == nil {
			e.log.Warn("writing draft text failed; it is tried again", "error", err)
			wait = 500 * time.Millisecond
			e.drafted.set()
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

func (e *Engine) writeDraftsOnce(ctx context.Context) error {
	var from []*attempt
	var records []store.Record
	for _, a := range e.attempts() {
		if r, ok := a.nextChunk(); ok {
			from = append(from, a)
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	verdicts, err := e.store.Record(ctx, records)
	if err != nil {
		return err
	}
	for i, v := range verdicts {
		a := from[i]
		if v.Refused != nil {
			a.mute()
			a.lost(v.Refused)
			e.fencedOut(a, v.Refused)
			continue
		}
		a.wrote()
		e.hub.wrote(a.as.Task.ID, a.as.Guard.Version, store.Chunk{Seq: records[i].Seq, Text: records[i].Text})
	}
	return nil
}

// nextChunk is the chunk to write now. A chunk whose write failed is written
// again as it was, so that its sequence number never stands for two texts.
func (a *attempt) nextChunk() (store.Record, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending || a.text.mute || errors.Is(context.Cause(a.ctx), onereply.ErrCancelled) {
		return store.Record{}, false
	}
	if a.text.flying == "" {
		if a.text.waiting.Len() == 0 {
			return store.Record{}, false
		}
		a.text.flying = a.text.waiting.String()
		a.text.waiting.Reset()
		a.text.seq++
	}
	return store.Record{Guard: a.as.Guard, Op: store.DraftText, Seq: a.text.seq, Text: a.text.flying}, true
}

// mute drops the draft of an assignment that is not current any more.
func (a *attempt) mute() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.mute = true
	a.text.flying = ""
	a.text.waiting.Reset()
}

func (a *attempt) wrote() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.flying = ""
	if a.text.room != nil {
		a.text.room.set()
	}
	if a.text.waiting.Len() > 0 {
		a.e.drafted.set()
	}
}
