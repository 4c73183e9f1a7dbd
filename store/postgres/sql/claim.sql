-- P5: hands out the tasks that have waited longest, queued and due or running
-- with their lease over. The version rises in the statement that claims. The
-- search compares with the statement's time, which an index can use and which is
-- never late; the claim itself with the clock read after the locks.
-- The arrays stand in sub-selects so that one plan serves all sizes: planning this
-- anew each time would cost as much as running it.
WITH f AS MATERIALIZED (
    SELECT w.* FROM (
        SELECT q.* FROM unnest((SELECT $4::text[])) AS k(kind) CROSS JOIN LATERAL (
            SELECT t.id, t.status, t.attempts_used, t.attempts_max, t.deadline, t.elapsed_from, t.elapsed_max, t.run_at, t.lease_until, t.run_at AS since FROM onereply.tasks t
            WHERE t.status = 'queued' AND t.kind = k.kind AND t.run_at <= statement_timestamp()
            ORDER BY t.run_at LIMIT (SELECT cardinality($1::text[])) FOR NO KEY UPDATE SKIP LOCKED) q
        UNION ALL
        SELECT e.* FROM unnest((SELECT $4::text[])) AS k(kind) CROSS JOIN LATERAL (
            SELECT t.id, t.status, t.attempts_used, t.attempts_max, t.deadline, t.elapsed_from, t.elapsed_max, t.run_at, t.lease_until, t.lease_until AS since FROM onereply.tasks t
            WHERE t.status = 'running' AND t.kind = k.kind AND t.lease_until <= statement_timestamp()
            ORDER BY t.lease_until LIMIT (SELECT cardinality($1::text[])) FOR NO KEY UPDATE SKIP LOCKED) e
    ) w
), n AS MATERIALIZED (
    SELECT f.*, clock_timestamp() AS now, row_number() OVER (ORDER BY f.since, f.id) AS place FROM f
), p AS MATERIALIZED (
    SELECT n.*, a.attempt AS fresh,
        NOT (n.attempts_used < n.attempts_max AND (n.deadline IS NULL OR n.deadline > n.now) AND n.elapsed_from + n.elapsed_max > n.now) AS spent
    FROM n JOIN unnest((SELECT $1::text[])) WITH ORDINALITY AS a(attempt, place) ON a.place = n.place
    WHERE n.status = 'queued' AND n.run_at <= n.now OR n.status = 'running' AND n.lease_until <= n.now
), c AS (
    UPDATE onereply.tasks t
    SET version = t.version + 1, attempt = p.fresh, worker = $2, status = 'running',
        attempts_used = t.attempts_used + CASE WHEN p.spent THEN 0 ELSE 1 END,
        lease_until = CASE WHEN p.spent THEN p.now + $3::interval
            ELSE least(p.now + $3::interval, t.deadline, t.elapsed_from + t.elapsed_max) END
    FROM p WHERE t.id = p.id
    RETURNING
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance,
        p.spent, p.now, p.status = 'running' AS took
), closed AS (
    UPDATE onereply.attempts a SET outcome = 'lease_expired', ended_at = c.now
    FROM c WHERE c.took AND a.task_id = c.id AND a.version = c.version - 1 AND num_nulls(nullif(a.outcome, '')) <> 0
), added AS (
    INSERT INTO onereply.attempts (task_id, version, attempt, worker, started_at)
    SELECT id, version, attempt, worker, now FROM c WHERE NOT spent
), drafted AS (
    DELETE FROM onereply.drafts x USING c WHERE c.version > 1 AND x.task_id = c.id AND x.version < c.version
)
SELECT
    c.id, c.kind, c.scope, c.status, c.reason, c.error_code, c.error_message, c.version, c.attempt, c.worker,
    c.lease_until, c.run_at, c.created_at, c.ended_at, c.attempts_used, c.attempts_max, c.calls_used,
    c.calls_max, c.open_call, c.elapsed_max, c.elapsed_from, c.deadline, c.on_unknown, c.acceptance,
    c.spent, c.took, c.now, i.input, s.state, o.number, o.attempt AS open_attempt, o.operation
FROM c JOIN onereply.inputs i ON i.task_id = c.id
LEFT JOIN onereply.progress s ON c.version > 1 AND s.task_id = c.id
LEFT JOIN onereply.calls o ON c.open_call > 0 AND o.task_id = c.id AND o.number = c.open_call
ORDER BY c.run_at, c.id
