-- Waits for the rows in the order of their ids, which is the lock order everywhere.
SELECT
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance, clock_timestamp() AS now
FROM (SELECT DISTINCT k.id COLLATE "C" AS id FROM unnest($1::text[]) AS k(id) ORDER BY 1) k
CROSS JOIN LATERAL (SELECT * FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE) t
