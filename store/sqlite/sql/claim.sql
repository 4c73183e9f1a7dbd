-- P5: the version rises in the statement that claims, and only where the task
-- is due and queued, or running with its lease over.
UPDATE tasks SET version = version + 1, attempt = :attempt, worker = :worker, status = 'running',
    lease_until = :lease_until, attempts_used = attempts_used + :added
WHERE id = :task AND ((status = 'queued' AND run_at <= :now) OR (status = 'running' AND lease_until <= :now))
