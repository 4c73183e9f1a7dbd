-- The attempt that this claim started.
INSERT INTO attempts (task_id, version, attempt, worker, started_at) VALUES (:task, :version, :attempt, :worker, :now)
