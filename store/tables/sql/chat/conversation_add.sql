-- A new conversation, in its scope.
INSERT INTO conversations (id, scope, title, created_at) VALUES ($1, $2, $3, $4)
