-- How many tasks there are of each status.
SELECT 'queued', count(*) FROM tasks INDEXED BY tasks_due WHERE status = 'queued'
UNION ALL SELECT 'running', count(*) FROM tasks INDEXED BY tasks_leased WHERE status = 'running'
UNION ALL SELECT status, count(*) FROM tasks INDEXED BY tasks_ended WHERE ended_at > 0 GROUP BY status
