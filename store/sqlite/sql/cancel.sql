-- Cancel ends a task that has not ended; whoever works on it is fenced out.
UPDATE tasks SET status = 'cancelled', lease_until = 0, open_call = 0, ended_at = :now
WHERE id = :task AND status IN ('queued', 'running')
RETURNING id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
