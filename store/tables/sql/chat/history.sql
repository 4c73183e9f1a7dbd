-- What a model is told before a message: the questions before it that have an
-- answer, each with the newest accepted one. What failed, was cancelled or is
-- still being answered has no answer and so is not there.
SELECT q.text, a.text
FROM messages here
JOIN conversations c ON c.id = here.conversation_id
JOIN messages q ON q.conversation_id = here.conversation_id AND q.position < here.position
JOIN messages a ON a.reply_to = q.id
WHERE c.scope = $1 AND here.id = $2
  AND NOT EXISTS (SELECT 1 FROM messages s WHERE s.reply_to = a.reply_to AND s.position > a.position)
ORDER BY q.position
