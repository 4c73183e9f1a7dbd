-- Resume renews the record, so that no later submission replaces the key of
-- the reopened task.
UPDATE submissions SET expires_at = max(expires_at, :expires)
WHERE task_id = :task AND (scope, action, key) = (SELECT :scope, action, key FROM inputs WHERE task_id = :task)
