-- A message at its place, in the transaction that creates its task (P2) or that
-- accepts it as the response (P4).
INSERT INTO messages (id, conversation_id, position, role, text, created_at, documents, task_id, reply_to)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULLIF($9, ''))
