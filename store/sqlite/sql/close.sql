-- P5: the assignment that closes a call must be current. What stays open is the
-- latest of the calls that nobody closed.
UPDATE tasks SET open_call = coalesce(
    (SELECT max(number) FROM calls WHERE task_id = tasks.id AND closed_at = 0 AND number <> :number), 0)
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
