-- One conversation of a scope.
SELECT id, title, created_at FROM conversations WHERE scope = $1 AND id = $2
