-- P5, P6, P10: only the current assignment may put the task back; it is due at
-- run_at, and a call that is open stays open for whoever claims it.
UPDATE tasks SET status = 'queued', run_at = :run_at, lease_until = 0,
    error_code = CASE WHEN :failed THEN :error_code ELSE error_code END,
    error_message = CASE WHEN :failed THEN :error_message ELSE error_message END
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
RETURNING id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
