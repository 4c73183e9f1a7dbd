package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// Drafts implements store.Reader, in one statement and so from one snapshot.
func (s *Store) Drafts(ctx context.Context, positions []store.Position) ([]store.Draft, error) {
	if len(positions) == 0 {
		return nil, nil
	}
	drafts := make([]store.Draft, len(positions))
	tasks, versions, seqs := make([]string, len(positions)), make([]int64, len(positions)), make([]int64, len(positions))
	for i, p := range positions {
		drafts[i].Task = p.Task
		tasks[i], versions[i], seqs[i] = string(p.Task), p.Version, p.Seq
	}
	err := s.do(ctx, s.db, "drafts", func(scan func(...any) error) error {
		var ord, version int64
		var status string
		var seq sql.NullInt64
		var text sql.NullString
		if err := scan(&ord, &status, &version, &seq, &text); err != nil {
			return err
		}
		d := &drafts[ord-1]
		d.Found, d.Status, d.Version = true, onereply.Status(status), version
		if seq.Valid {
			d.Chunks = append(d.Chunks, store.Chunk{Seq: seq.Int64, Text: text.String})
		}
		return nil
	}, tasks, versions, seqs)
	if err != nil {
		return nil, fault("drafts", err)
	}
	return drafts, nil
}

// Due implements store.Reader. It reads two index entries a kind.
func (s *Store) Due(ctx context.Context, kinds []string) (due store.Due, err error) {
	err = s.do(ctx, s.db, "due", func(scan func(...any) error) error {
		var known bool
		var wait interval
		if err := scan(&known, &wait); err != nil {
			return err
		}
		if known {
			due.Now, due.Wait = wait <= 0, max(0, time.Duration(wait))
		}
		return nil
	}, kinds)
	return due, fault("due", err)
}

// Stats implements store.Reader.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	stats := store.Stats{ByStatus: map[onereply.Status]int{}}
	err := s.do(ctx, s.db, "stats_status", func(scan func(...any) error) error {
		var status string
		var n int
		if err := scan(&status, &n); err != nil {
			return err
		}
		stats.ByStatus[onereply.Status(status)] = n
		return nil
	})
	if err == nil {
		err = s.do(ctx, s.db, "stats_waiting", func(scan func(...any) error) error {
			var waiting interval
			if err := scan(&waiting, &stats.Expired); err != nil {
				return err
			}
			stats.OldestWaiting = time.Duration(waiting)
			return nil
		})
	}
	return stats, fault("stats", err)
}

type attemptRow struct {
	record         onereply.AttemptRecord
	renewals       int
	renewed, again time.Time // the first renewal and the last
}

func (s *Store) attemptRows(ctx context.Context, r runner, tasks []string) (map[onereply.TaskID][]attemptRow, error) {
	rows := make(map[onereply.TaskID][]attemptRow)
	err := s.do(ctx, r, "attempts_read", func(scan func(...any) error) error {
		var task, attempt, outcome, code, message string
		var a attemptRow
		var ended, first, last sql.NullTime
		err := scan(&task, &a.record.Version, &attempt, &a.record.Worker, &a.record.StartedAt, &ended, &outcome, &code, &message,
			&a.renewals, &first, &last)
		if err != nil {
			return err
		}
		a.record.ID, a.record.Outcome = onereply.AttemptID(attempt), onereply.AttemptOutcome(outcome)
		a.record.StartedAt, a.record.EndedAt = a.record.StartedAt.UTC(), utc(ended)
		a.record.Error = failure(code, message)
		a.renewed, a.again = utc(first), utc(last)
		rows[onereply.TaskID(task)] = append(rows[onereply.TaskID(task)], a)
		return nil
	}, tasks)
	return rows, err
}

type callRow struct {
	number       int
	version      int64
	attempt      onereply.AttemptID
	counted      time.Time
	class, code  string
	usage        onereply.Usage
	operation    string
	checkpointed time.Time
}

func (s *Store) callRows(ctx context.Context, r runner, tasks []string) (map[onereply.TaskID][]callRow, error) {
	rows := make(map[onereply.TaskID][]callRow)
	err := s.do(ctx, r, "calls_read", func(scan func(...any) error) error {
		var task, attempt string
		var c callRow
		var closed, checkpointed sql.NullTime
		err := scan(&task, &c.number, &c.version, &attempt, &c.counted, &closed, &c.class, &c.code,
			&c.usage.InputTokens, &c.usage.OutputTokens, &c.operation, &checkpointed)
		if err != nil {
			return err
		}
		c.attempt, c.counted, c.checkpointed = onereply.AttemptID(attempt), c.counted.UTC(), utc(checkpointed)
		rows[onereply.TaskID(task)] = append(rows[onereply.TaskID(task)], c)
		return nil
	}, tasks)
	return rows, err
}
