-- The attempts of tasks, oldest first.
SELECT task_id, version, attempt, worker, started_at, ended_at, outcome, error_code, error_message, renewals, renewed_first, renewed_last
FROM onereply.attempts WHERE task_id = ANY($1::text[]) ORDER BY task_id, version
