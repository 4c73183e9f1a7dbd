-- The stored events of a task.
SELECT type, version, attempt, why, first_at, last_at, count, worker, code, detail, input_tokens, output_tokens
FROM onereply.events WHERE task_id = $1 ORDER BY first_at, type
