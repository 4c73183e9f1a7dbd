-- The steps of a task that left no column elsewhere.
SELECT type, version, attempt, why, first_at, last_at, count, worker, code, detail, input_tokens, output_tokens
FROM events WHERE task_id = :task ORDER BY first_at
