package sqlite

import (
	"context"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Drafts implements store.Reader. All positions are answered from one snapshot,
// so that a terminal state never comes before the text that preceded it.
func (s *Store) Drafts(ctx context.Context, positions []store.Position) ([]store.Draft, error) {
	if len(positions) == 0 {
		return nil, nil
	}
	drafts := make([]store.Draft, len(positions))
	err := s.snapshot(ctx, "drafts", func(q *querier) error {
		for i, p := range positions {
			if err := q.draft(ctx, p, &drafts[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return drafts, nil
}

func (q *querier) draft(ctx context.Context, p store.Position, d *store.Draft) error {
	d.Task = p.Task
	_, err := q.each(ctx, "draft_state", func(r row) error {
		d.Found, d.Status, d.Version = true, onereply.Status(r.text(0)), r.integer(1)
		return nil
	}, "task", p.Task)
	if err != nil || !d.Found || d.Status.Ended() {
		return err
	}
	after := int64(0)
	if d.Version == p.Version {
		after = p.Seq
	}
	_, err = q.each(ctx, "draft_chunks", func(r row) error {
		d.Chunks = append(d.Chunks, store.Chunk{Seq: r.integer(0), Text: r.text(1)})
		return nil
	}, "task", p.Task, "version", d.Version, "seq", after)
	return err
}

// readClock gives readers the time: not before the latest mark.
func (q *querier) readClock(ctx context.Context) error {
	var mark int64
	if _, err := q.each(ctx, "clock_now", func(r row) error { mark = r.integer(0); return nil }); err != nil {
		return err
	}
	q.now = q.s.clock.read(mark)
	return nil
}

// Due implements store.Reader. It reads at most two index entries a kind.
func (s *Store) Due(ctx context.Context, kinds []string) (due store.Due, err error) {
	err = s.snapshot(ctx, "due", func(q *querier) error {
		if err := q.readClock(ctx); err != nil {
			return err
		}
		next := int64(0)
		for _, kind := range kinds {
			for _, name := range []string{"due_queued", "due_expired"} {
				_, err := q.each(ctx, name, func(r row) error {
					if at := r.integer(0); next == 0 || at < next {
						next = max(at, 1)
					}
					return nil
				}, "kind", kind)
				if err != nil {
					return err
				}
			}
		}
		if next != 0 {
			due.Now, due.Wait = next <= q.now, max(0, span(next-q.now))
		}
		return nil
	})
	return due, err
}

// Stats implements store.Reader.
func (s *Store) Stats(ctx context.Context) (stats store.Stats, err error) {
	stats.ByStatus = map[onereply.Status]int{}
	err = s.snapshot(ctx, "stats", func(q *querier) error {
		if err := q.readClock(ctx); err != nil {
			return err
		}
		_, err := q.each(ctx, "stats_status", func(r row) error {
			if n := r.count(1); n > 0 {
				stats.ByStatus[onereply.Status(r.text(0))] = n
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, err = q.each(ctx, "stats_waiting", func(r row) error {
			if since := r.integer(0); since != 0 {
				stats.OldestWaiting = time.Duration(q.now-since) * time.Millisecond
			}
			stats.Expired = r.count(1)
			return nil
		}, "now", q.now)
		return err
	})
	return stats, err
}
