package main

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onereply/onereply"
)

// The batched limit: what the same rows cost when a program writes them in
// groups of a hundred, one statement a table, each of the three transactions in
// one round trip, with nothing checked and nobody waiting.
const (
	batchedGroup  = 100
	batchedAtSame = 4
)

var batchedSubmit = []string{
	`INSERT INTO onereply.submissions (scope, action, key, fingerprint, task_id, created_at, expires_at)
		SELECT 'bench', 'note', id, $2::bytea, id, now(), now() + interval '168 hours' FROM unnest($1::text[]) AS u(id)`,
	`INSERT INTO onereply.tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max, elapsed_max, elapsed_from, on_unknown, acceptance)
		SELECT id, 'note', 'bench', 'queued', now(), now(), 5, 3, '15 minutes', now(), 'retry', 'current-assignment' FROM unnest($1::text[]) AS u(id)`,
	`INSERT INTO onereply.inputs (task_id, action, key, input) SELECT id, 'note', id, $2 FROM unnest($1::text[]) AS u(id)`,
	`INSERT INTO notes (task_id, role, text) SELECT id, 'user', $2 FROM unnest($1::text[]) AS u(id)`,
}

var batchedClaim = []string{
	`UPDATE onereply.tasks SET version = version + 1, attempt = $2, worker = 'plain', status = 'running', lease_until = now() + interval '30 seconds',
		attempts_used = attempts_used + 1 WHERE id = ANY ($1::text[])`,
	`INSERT INTO onereply.attempts (task_id, version, attempt, worker, started_at) SELECT id, 1, $2, 'plain', now() FROM unnest($1::text[]) AS u(id)`,
}

var batchedAccept = []string{
	`UPDATE onereply.tasks SET status = 'completed', lease_until = NULL, ended_at = now() WHERE id = ANY ($1::text[])`,
	`INSERT INTO onereply.responses (task_id, version, attempt, response, accepted_at) SELECT id, 1, 'plain', $2, now() FROM unnest($1::text[]) AS u(id)`,
	`UPDATE onereply.attempts SET outcome = 'accepted', ended_at = now() WHERE task_id = ANY ($1::text[]) AND version = 1`,
	`INSERT INTO notes (task_id, role, text) SELECT id, 'assistant', $2 FROM unnest($1::text[]) AS u(id)`,
}

func batchedLife() entrant {
	return entrant{"plain SQL in groups of 100", func(ctx context.Context, d *database, w *watch) error {
		p, err := product(ctx, d, pgKind(false, false), -1, nil) // for its tables
		if err != nil {
			return err
		}
		if err := p.close(); err != nil {
			return err
		}
		raw, err := json.Marshal(ask{Text: sentence})
		if err != nil {
			return err
		}
		group := func() error { return liveInGroup(ctx, d, string(raw)) }
		if err := group(); err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
		var wg sync.WaitGroup
		var done atomic.Int64
		failed := make(chan error, batchedAtSame)
		began := time.Now()
		for range batchedAtSame {
			wg.Go(func() {
				for time.Since(began) < contestTime {
					if err := group(); err != nil {
						failed <- err
						return
					}
					done.Add(batchedGroup)
				}
			})
		}
		wg.Wait()
		close(failed)
		if err := <-failed; err != nil {
			return err
		}
		return w.end(int(done.Load()))
	}}
}

// liveInGroup takes a hundred tasks through their life.
func liveInGroup(ctx context.Context, d *database, raw string) error {
	group := make([]string, batchedGroup)
	for i := range group {
		group[i] = ids.New()
	}
	print := onereply.Fingerprint("note", []byte(raw))
	steps := []struct {
		statements []string
		second     []any // of each statement; nil: it takes one argument
	}{
		{batchedSubmit, []any{print, nil, raw, sentence}},
		{batchedClaim, []any{"plain", "plain"}},
		{batchedAccept, []any{nil, raw, nil, sentence}},
	}
	for _, step := range steps {
		b := &pgx.Batch{}
		b.Queue("begin")
		for i, text := range step.statements {
			if step.second[i] == nil {
				b.Queue(text, group)
			} else {
				b.Queue(text, group, step.second[i])
			}
		}
		b.Queue("commit")
		if err := d.pool.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	return nil
}
