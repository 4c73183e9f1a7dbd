-- Since when the oldest due task waits, and how many leases are over.
SELECT clock_timestamp() - (SELECT min(run_at) FROM onereply.tasks WHERE status = 'queued' AND run_at <= statement_timestamp()),
    (SELECT count(*) FROM onereply.tasks WHERE status = 'running' AND lease_until <= statement_timestamp())
