-- Takes the write lock of a transaction that may have begun without it, so
-- that the clock is read after the lock is held (P5).
UPDATE clock SET turns = turns + 1 WHERE id = 1
