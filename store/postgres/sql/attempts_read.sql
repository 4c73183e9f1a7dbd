-- The attempts of tasks, oldest first.
SELECT task_id, version, attempt, worker, started_at, ended_at, outcome, error_code, error_message, renewals, renewed_first, renewed_last
FROM unnest($1::text[]) AS k(id)
CROSS JOIN LATERAL (SELECT * FROM onereply.attempts a WHERE a.task_id = k.id OFFSET 0) a ORDER BY task_id, version
