-- P1: one task per (scope, action, key) while its record is retained. An
-- expired record whose task has ended is replaced by the statement itself, not
-- by a janitor's timing. No row comes back for the loser.
INSERT INTO submissions (scope, action, key, fingerprint, task_id, answer, created_at, expires_at)
VALUES (:scope, :action, :key, :fingerprint, :task, :answer, :now, :expires)
ON CONFLICT (scope, action, key) DO UPDATE SET
    fingerprint = excluded.fingerprint, task_id = excluded.task_id, answer = excluded.answer,
    created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE submissions.expires_at <= excluded.created_at
  AND NOT EXISTS (SELECT 1 FROM tasks WHERE id = submissions.task_id AND status IN ('queued', 'running'))
RETURNING 1
