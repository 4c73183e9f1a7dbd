-- Tasks by filter, newest first; an empty filter member is any.
SELECT id, kind, scope, status, reason, error_code, error_message, version, attempt, worker,
    lease_until, run_at, created_at, ended_at, attempts_used, attempts_max, calls_used, calls_max,
    open_call, elapsed_max, elapsed_from, deadline, on_unknown, acceptance
FROM tasks
WHERE id < :after
  AND (:scope = '' OR scope = :scope) AND (:status = '' OR status = :status) AND (:kind = '' OR kind = :kind)
ORDER BY id DESC LIMIT :limit
