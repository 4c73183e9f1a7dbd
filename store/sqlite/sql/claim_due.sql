-- P15: queued tasks of a kind that are due, the longest waiting first.
SELECT id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
FROM tasks INDEXED BY tasks_due
WHERE status = 'queued' AND kind = :kind AND run_at <= :now ORDER BY run_at LIMIT :limit
