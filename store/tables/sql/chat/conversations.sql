-- A page of a scope's conversations, newest first. Ids sort by creation.
SELECT id, title, created_at
FROM conversations
WHERE scope = $1 AND ($2 = '' OR id < $2)
ORDER BY id DESC LIMIT $3
