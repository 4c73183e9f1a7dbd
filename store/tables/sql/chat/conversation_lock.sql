-- Locks a conversation before its deletion looks for tasks a last time: whoever
-- adds a message meanwhile waits, and then finds nothing to add it to.
UPDATE conversations SET last_position = last_position WHERE scope = $1 AND id = $2 RETURNING id
