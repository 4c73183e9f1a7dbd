-- P1, P2: one task per (scope, action, key) while its record is retained. An
-- expired record whose task has ended is replaced by the statement itself, not by
-- a janitor's timing. Key, task and input commit together; only winners come back.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::interval[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::interval[], $11::timestamptz[], $12::text[], $13::text[], $14::integer[], $15::integer[], $16::interval[])
        AS u(scope, action, key, fingerprint, retention, answer, id, kind,
            input, delay, deadline, on_unknown, acceptance, attempts, calls, elapsed)
), won AS (
    INSERT INTO onereply.submissions AS s (scope, action, key, fingerprint, task_id, answer, created_at, expires_at)
    SELECT u.scope, u.action, u.key, u.fingerprint, u.id, u.answer, c.now, c.now + u.retention
    FROM u, (SELECT clock_timestamp() AS now) c ORDER BY u.scope, u.action, u.key
    ON CONFLICT (scope, action, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, task_id = excluded.task_id, answer = excluded.answer,
        created_at = excluded.created_at, expires_at = excluded.expires_at
    WHERE s.expires_at <= clock_timestamp()
      AND coalesce((SELECT t.status FROM onereply.tasks t WHERE t.id = s.task_id), 'gone') NOT IN ('queued', 'running')
    RETURNING s.scope, s.action, s.key, s.created_at
), x AS MATERIALIZED (
    SELECT u.*, won.created_at FROM won JOIN u ON u.scope = won.scope AND u.action = won.action AND u.key = won.key
), t AS (
    INSERT INTO onereply.tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max, elapsed_max, elapsed_from,
        deadline, on_unknown, acceptance)
    SELECT id, kind, scope, 'queued', created_at + delay, created_at, attempts, calls, elapsed, created_at,
        deadline, on_unknown, acceptance
    FROM x WHERE answer IS NULL
), i AS (
    INSERT INTO onereply.inputs (task_id, action, key, input)
    SELECT id, action, key, input FROM x WHERE answer IS NULL
)
SELECT scope, action, key, created_at FROM x
