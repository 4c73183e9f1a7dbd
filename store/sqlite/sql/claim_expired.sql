-- P15: running tasks of a kind whose lease is over, the longest first.
SELECT id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
FROM tasks INDEXED BY tasks_leased
WHERE status = 'running' AND kind = :kind AND lease_until <= :now ORDER BY lease_until LIMIT :limit
