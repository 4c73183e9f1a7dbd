-- The next place in a conversation of a scope; no row where there is none (P2:
-- what was deleted gets no message). It locks the row, so messages of one
-- conversation are placed one after the other and a deletion waits for them. A
-- conversation without a title takes the one given.
UPDATE conversations
SET last_position = last_position + 1, title = CASE WHEN title = '' THEN $3 ELSE title END
WHERE scope = $1 AND id = $2
RETURNING last_position
