-- P4: a task that has not ended becomes cancelled, with all that only a running
-- task needs. A call that nobody closed has an outcome that nobody knows (P10).
WITH l AS MATERIALIZED (
    SELECT r.* FROM (SELECT DISTINCT k.id COLLATE "C" AS id FROM unnest($1::text[]) AS k(id) ORDER BY 1) k CROSS JOIN LATERAL (
        SELECT t.id, t.status FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE) r
), c AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), d AS (
    UPDATE onereply.tasks t SET status = 'cancelled', lease_until = NULL, open_call = 0, ended_at = c.now
    FROM c WHERE t.id = c.id AND c.status IN ('queued', 'running')
    RETURNING
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance, c.now
), tried AS (
    UPDATE onereply.attempts a SET outcome = 'cancelled', ended_at = d.now FROM d WHERE a.task_id = d.id AND a.version = d.version AND num_nulls(nullif(a.outcome, '')) <> 0
), closed AS (
    UPDATE onereply.calls c SET closed_at = d.now, class = 'unknown' FROM d WHERE d.calls_used > 0 AND c.task_id = d.id AND c.closed_at IS NULL
), drafted AS (
    DELETE FROM onereply.drafts x USING d WHERE x.task_id = d.id
), progressed AS (
    DELETE FROM onereply.progress x USING d WHERE x.task_id = d.id
), event AS (
    INSERT INTO onereply.events (task_id, type, version, attempt, why, first_at, last_at, count)
    SELECT id, 'cancelled', version, attempt, '', now, now, 1 FROM d
)
SELECT
    d.id, d.kind, d.scope, d.status, d.reason, d.error_code, d.error_message, d.version, d.attempt, d.worker,
    d.lease_until, d.run_at, d.created_at, d.ended_at, d.attempts_used, d.attempts_max, d.calls_used,
    d.calls_max, d.open_call, d.elapsed_max, d.elapsed_from, d.deadline, d.on_unknown, d.acceptance
FROM d
