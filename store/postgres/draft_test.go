package postgres_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
	"github.com/onereply/onereply/store/postgres"
)

// The trap: a chunk that commits while the accept's statement is on its way to
// the row is not in that statement's snapshot, and stays for ever.
func TestNoChunkOutlivesTheEndThatItRacesWith(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	for range 150 {
		a := s.running(time.Minute)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for seq := range int64(3) {
			wg.Go(func() {
				<-start
				_, err := s.store.Record(t.Context(), []store.Record{{Guard: a.Guard, Op: store.DraftText, Seq: seq + 1, Text: "late"}})
				s.must(err)
			})
		}
		wg.Go(func() {
			<-start
			_, err := s.finish(store.Ending{Guard: a.Guard, Op: store.Accept, Outcome: onereply.OutcomeAccepted, Response: json.RawMessage(`{}`)})
			s.must(err)
		})
		close(start)
		wg.Wait()
	}
	var left, completed int
	s.scan(&left, "SELECT count(*) FROM "+s.schema+".drafts")
	s.scan(&completed, "SELECT count(*) FROM "+s.schema+".tasks WHERE status = 'completed'")
	if left > 0 || completed != 150 {
		t.Errorf("%d chunks are left of %d completed tasks", left, completed)
	}
}
