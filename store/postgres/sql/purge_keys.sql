-- Removes records past their retention whose task has ended (P1: no others).
WITH old AS MATERIALIZED (
    SELECT s.scope, s.action, s.key FROM onereply.submissions s
    WHERE s.expires_at <= statement_timestamp()
      AND NOT EXISTS (SELECT 1 FROM onereply.tasks t WHERE t.id = s.task_id AND t.status IN ('queued', 'running'))
    ORDER BY s.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM onereply.submissions s USING old
    WHERE s.scope = old.scope AND s.action = old.action AND s.key = old.key AND s.expires_at <= clock_timestamp()
    RETURNING 1
)
SELECT count(*) FROM gone
