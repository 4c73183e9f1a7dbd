-- P1: what the losers' keys name, read by a second statement: the first would not
-- see a winner that committed while it waited.
SELECT s.scope, s.action, s.key, s.fingerprint, s.answer, i.input, r.response, t.id IS NOT NULL AS known,
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance
FROM unnest($1::text[], $2::text[], $3::text[]) AS u(scope, action, key)
CROSS JOIN LATERAL (SELECT * FROM onereply.submissions s WHERE s.scope = u.scope AND s.action = u.action AND s.key = u.key OFFSET 0) s
LEFT JOIN LATERAL (SELECT * FROM onereply.tasks t WHERE t.id = s.task_id AND s.task_id <> '' OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT i.input FROM onereply.inputs i WHERE i.task_id = t.id OFFSET 0) i ON true
LEFT JOIN LATERAL (SELECT r.response FROM onereply.responses r WHERE r.task_id = t.id OFFSET 0) r ON true
