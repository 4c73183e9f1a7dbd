-- Another task for a question (P12); the newest place is the newest task.
INSERT INTO regenerations (task_id, message_id, position)
SELECT $1, m.id, CAST($3 AS BIGINT) FROM messages m WHERE m.id = $2
