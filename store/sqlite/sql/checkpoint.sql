-- P10: the provider-side id by which the open call can be looked up again.
UPDATE calls SET operation = :operation, checkpointed_at = :now
WHERE task_id = :task AND number = (SELECT open_call FROM tasks
    WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now)
