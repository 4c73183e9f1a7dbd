-- P3, P5: under first-valid any recorded attempt's answer completes a task that
-- has not ended, while its slot is empty and its deadline has not passed.
UPDATE tasks SET status = 'completed', reason = '', error_code = '', error_message = '', attempt = :attempt,
    worker = (SELECT worker FROM attempts WHERE task_id = tasks.id AND version = :version),
    lease_until = 0, open_call = 0, ended_at = :now
WHERE id = :task AND status IN ('queued', 'running') AND acceptance = 'first-valid' AND (deadline = 0 OR deadline > :now)
  AND EXISTS (SELECT 1 FROM attempts WHERE task_id = tasks.id AND version = :version AND attempt = :attempt)
  AND NOT EXISTS (SELECT 1 FROM responses WHERE task_id = tasks.id)
RETURNING id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
