-- The accepted candidate (P3).
SELECT response, attempt, version, accepted_at FROM responses WHERE task_id = :task
