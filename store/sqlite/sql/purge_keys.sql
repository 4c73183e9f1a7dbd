-- Removes records past their retention whose task has ended (P1: no others).
DELETE FROM submissions WHERE (scope, action, key) IN (
    SELECT s.scope, s.action, s.key FROM submissions s
    WHERE s.expires_at <= :now
      AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.task_id AND t.status IN ('queued', 'running'))
    ORDER BY s.expires_at LIMIT :limit)
