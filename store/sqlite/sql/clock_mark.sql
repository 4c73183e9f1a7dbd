-- Keeps the clock from running backwards, across restarts and processes. It
-- writes nothing where the transaction changed nothing else.
UPDATE clock SET mark = max(mark, :now), turns = turns + 1 WHERE id = 1 AND total_changes() > :before
