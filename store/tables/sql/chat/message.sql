-- One message of a scope. A question has its newest task; an answer is shown
-- when none to the same question was accepted after it.
SELECT m.id, m.conversation_id, m.role, m.text, m.created_at, m.documents,
    COALESCE((SELECT r.task_id FROM regenerations r WHERE r.message_id = m.id ORDER BY r.position DESC LIMIT 1), m.task_id),
    COALESCE(m.reply_to, ''),
    CASE WHEN EXISTS (SELECT 1 FROM messages s WHERE s.reply_to = m.reply_to AND s.position > m.position) THEN 0 ELSE 1 END
FROM messages m
JOIN conversations c ON c.id = m.conversation_id
WHERE c.scope = $1 AND m.id = $2
