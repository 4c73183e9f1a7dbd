-- Resume reopens a failed task: the allowances grow, nothing used is given back,
-- elapsed time counts from now. Its key's record is renewed, so that no later
-- submission replaces the key of the reopened task (P1).
WITH d AS (
    UPDATE onereply.tasks t
    SET status = 'queued', reason = '', error_code = '', error_message = '', ended_at = NULL, run_at = c.now, elapsed_from = c.now,
        attempts_max = t.attempts_max + $2, calls_max = t.calls_max + $3, deadline = coalesce($4::timestamptz, t.deadline)
    FROM (SELECT clock_timestamp() AS now) c
    WHERE t.id = $1 AND t.status = 'failed'
    RETURNING
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance, c.now
), renewed AS (
    UPDATE onereply.submissions s SET expires_at = greatest(s.expires_at, d.now + $5::interval)
    FROM d JOIN onereply.inputs i ON i.task_id = d.id
    WHERE s.task_id = d.id AND s.scope = d.scope AND s.action = i.action AND s.key = i.key
)
SELECT
    d.id, d.kind, d.scope, d.status, d.reason, d.error_code, d.error_message, d.version, d.attempt, d.worker,
    d.lease_until, d.run_at, d.created_at, d.ended_at, d.attempts_used, d.attempts_max, d.calls_used,
    d.calls_max, d.open_call, d.elapsed_max, d.elapsed_from, d.deadline, d.on_unknown, d.acceptance
FROM d
