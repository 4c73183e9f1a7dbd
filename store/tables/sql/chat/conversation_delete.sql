-- Takes the conversation's messages and their regenerations along.
DELETE FROM conversations WHERE scope = $1 AND id = $2
