-- Whether a task past its retention is named by no key record any more.
SELECT 1 FROM tasks t INDEXED BY tasks_ended
WHERE t.ended_at > 0 AND t.ended_at <= :before
  AND NOT EXISTS (SELECT 1 FROM inputs i JOIN submissions s ON s.scope = t.scope AND s.action = i.action AND s.key = i.key
      WHERE i.task_id = t.id AND s.task_id = t.id)
ORDER BY t.ended_at LIMIT 1
