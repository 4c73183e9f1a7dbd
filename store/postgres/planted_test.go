package postgres_test

import (
	"testing"
	"time"

	"github.com/onereply/onereply/store/postgres"
)

// The status in a guard is implied by the lease, which every end clears; and the
// empty slot by the status. So they are proved by planting a row as no method
// leaves it: ended, or its slot full, with the lease still running.
func TestStatusAndSlotGuardOnTheirOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	for _, status := range []string{"queued", "completed", "failed", "cancelled"} {
		for _, w := range writes() {
			a := s.running(time.Hour)
			s.exec("UPDATE "+s.schema+".tasks SET status = $2 WHERE id = $1", string(a.Task.ID), status)
			if v, err := w.do(s, a.Guard); err != nil || v.Refused == nil {
				t.Errorf("%s of an assignment of a %s task: %+v, %v; want it refused", w.name, status, v, err)
			}
			s.exec("UPDATE "+s.schema+".tasks SET status = 'completed', lease_until = NULL, ended_at = now() WHERE id = $1", string(a.Task.ID))
		}
	}
	a := s.running(time.Hour)
	s.exec("INSERT INTO "+s.schema+".responses VALUES ($1, 1, 'x', '{}', now())", string(a.Task.ID))
	if v, err := s.finish(accepting(a.Guard)); err == nil && v[0].Refused == nil {
		t.Error("a full slot was accepted into")
	}
	if _, err := s.other.Exec(t.Context(), "UPDATE "+s.schema+".responses SET response = '{1}'"); err == nil {
		t.Error("a response could be changed")
	}
}
