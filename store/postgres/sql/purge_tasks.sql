-- Removes ended tasks past their retention, with all that hangs on them, unless a
-- key record still names them (P1).
WITH old AS MATERIALIZED (
    SELECT t.id FROM onereply.tasks t
    WHERE t.ended_at <= statement_timestamp() - $1::interval
      AND NOT EXISTS (SELECT 1 FROM onereply.inputs i
          JOIN onereply.submissions s ON s.scope = t.scope AND s.action = i.action AND s.key = i.key AND s.task_id = t.id
          WHERE i.task_id = t.id)
    ORDER BY t.ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM onereply.tasks t USING old WHERE t.id = old.id AND t.ended_at IS NOT NULL
    RETURNING 1
)
SELECT count(*) FROM gone
