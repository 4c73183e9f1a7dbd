-- Resume reopens a failed task: the allowances grow, nothing used is given
-- back, elapsed time counts from now.
UPDATE tasks SET status = 'queued', reason = '', error_code = '', error_message = '', ended_at = 0, run_at = :now,
    attempts_max = attempts_max + :attempts, calls_max = calls_max + :calls, elapsed_from = :now,
    deadline = CASE WHEN :deadline > 0 THEN :deadline ELSE deadline END
WHERE id = :task AND status = 'failed'
RETURNING id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
