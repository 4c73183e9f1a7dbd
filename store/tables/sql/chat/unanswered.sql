-- The tasks of a conversation that produced no message. Among them are all that
-- have not ended, and failed ones, because a failed task can be resumed.
SELECT m.task_id
FROM messages m
JOIN conversations c ON c.id = m.conversation_id
WHERE c.scope = $1 AND c.id = $2 AND m.role = 'user'
  AND NOT EXISTS (SELECT 1 FROM messages a WHERE a.reply_to = m.id AND a.task_id = m.task_id)
UNION ALL
SELECT r.task_id
FROM regenerations r
JOIN messages m ON m.id = r.message_id
JOIN conversations c ON c.id = m.conversation_id
WHERE c.scope = $1 AND c.id = $2
  AND NOT EXISTS (SELECT 1 FROM messages a WHERE a.reply_to = r.message_id AND a.task_id = r.task_id)
