-- P10: a call that nobody closed has an outcome that nobody knows.
UPDATE calls SET closed_at = :now, class = 'unknown' WHERE task_id = :task AND closed_at = 0
