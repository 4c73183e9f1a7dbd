-- When the next queued task of a kind is due; reads one row.
SELECT run_at FROM tasks INDEXED BY tasks_due WHERE status = 'queued' AND kind = :kind ORDER BY run_at LIMIT 1
