-- P1, P2: submit.sql for a single submission, as a program's own transaction
-- makes it: the same conditions on plain parameters, for a third of the work.
WITH won AS (
    INSERT INTO onereply.submissions AS s (scope, action, key, fingerprint, task_id, answer, created_at, expires_at)
    SELECT $1::text, $2::text, $3::text, $4::bytea, $7::text, $6::text, c.now, c.now + $5::interval
    FROM (SELECT clock_timestamp() AS now) c
    ON CONFLICT (scope, action, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, task_id = excluded.task_id, answer = excluded.answer,
        created_at = excluded.created_at, expires_at = excluded.expires_at
    WHERE s.expires_at <= clock_timestamp()
      AND coalesce((SELECT t.status FROM onereply.tasks t WHERE t.id = s.task_id), 'gone') NOT IN ('queued', 'running')
    RETURNING s.scope, s.action, s.key, s.created_at
), t AS (
    INSERT INTO onereply.tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max, elapsed_max, elapsed_from,
        deadline, on_unknown, acceptance)
    SELECT $7::text, $8::text, scope, 'queued', created_at + $10::interval, created_at, $14::integer, $15::integer, $16::interval, created_at,
        $11::timestamptz, $12::text, $13::text
    FROM won WHERE $6::text IS NULL
), i AS (
    INSERT INTO onereply.inputs (task_id, action, key, input)
    SELECT $7::text, action, key, $9::text FROM won WHERE $6::text IS NULL
)
SELECT scope, action, key, created_at FROM won
