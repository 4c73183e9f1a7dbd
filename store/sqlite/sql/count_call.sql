-- P8: the call that was counted.
INSERT INTO calls (task_id, number, version, attempt, counted_at) VALUES (:task, :number, :version, :attempt, :now)
