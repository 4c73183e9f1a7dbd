-- Whether a key's record is past its retention and its task has ended.
SELECT 1 FROM submissions s
WHERE s.expires_at <= :now
  AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.task_id AND t.status IN ('queued', 'running'))
ORDER BY s.expires_at LIMIT 1
