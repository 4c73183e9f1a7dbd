-- How many tasks are in each state.
SELECT status, count(*) FROM onereply.tasks GROUP BY status
