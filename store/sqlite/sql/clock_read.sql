-- The mark below which no time is handed out, read once the write lock is held.
SELECT mark, turns, total_changes() FROM clock WHERE id = 1
