-- P10: a call that follows one which an earlier attempt left open leaves that
-- one's outcome unknown.
UPDATE calls SET closed_at = :now, class = 'unknown' WHERE task_id = :task AND version < :version AND closed_at = 0
