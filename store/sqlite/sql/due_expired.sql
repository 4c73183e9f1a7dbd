-- When the next lease of a kind is over; reads one row.
SELECT lease_until FROM tasks INDEXED BY tasks_leased WHERE status = 'running' AND kind = :kind ORDER BY lease_until LIMIT 1
