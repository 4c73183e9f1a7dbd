-- A task's attempts, oldest first.
SELECT version, attempt, worker, started_at, ended_at, outcome, error_code, error_message,
    renewals, renewed_first, renewed_last
FROM attempts WHERE task_id = :task ORDER BY version
