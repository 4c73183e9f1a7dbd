-- Locks the tasks, in the order of their ids, before the statement that ends
-- them: what was committed while a statement waits for its rows, such as a chunk
-- of the draft, is in the snapshot of the next one only, and would stay. It waits
-- for rows that are busy, no longer than the transaction's lock timeout.
SELECT r.id FROM (SELECT u.id FROM unnest($1::text[]) AS u(id) ORDER BY u.id COLLATE "C") k CROSS JOIN LATERAL (
    SELECT t.id FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE) r
