-- P3, P4, P5: the task completes only under the current assignment, its lease
-- not over, with its slot empty.
UPDATE tasks SET status = 'completed', reason = '', error_code = '', error_message = '', lease_until = 0, open_call = 0, ended_at = :now
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
  AND NOT EXISTS (SELECT 1 FROM responses WHERE task_id = tasks.id)
RETURNING id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
