-- Tasks by filter, newest first.
SELECT
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance
FROM onereply.tasks t
WHERE ($1 = '' OR t.id < $1) AND ($2 = '' OR t.scope = $2) AND ($3 = '' OR t.status = $3) AND ($4 = '' OR t.kind = $4)
ORDER BY t.id DESC LIMIT $5
