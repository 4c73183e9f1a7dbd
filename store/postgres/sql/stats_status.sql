-- How many tasks are in each state, counted in the indexes.
SELECT 'queued', count(*) FROM onereply.tasks WHERE status = 'queued' HAVING count(*) > 0
UNION ALL SELECT 'running', count(*) FROM onereply.tasks WHERE status = 'running' HAVING count(*) > 0
UNION ALL SELECT status, count(*) FROM onereply.tasks WHERE ended_at IS NOT NULL GROUP BY status
