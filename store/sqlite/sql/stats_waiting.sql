-- Since when the longest waiting task has been due (0: none is), and how many leases are over.
SELECT coalesce((SELECT min(run_at) FROM tasks INDEXED BY tasks_due WHERE status = 'queued' AND run_at <= :now), 0),
    (SELECT count(*) FROM tasks INDEXED BY tasks_leased WHERE status = 'running' AND lease_until <= :now)
