-- How long an assignment is still good for, read past the lock that somebody else
-- holds on its row. It extends nothing.
SELECT lease_until - clock_timestamp() FROM onereply.tasks
WHERE id = $1 AND version = $2 AND attempt = $3 AND status = 'running' AND lease_until > clock_timestamp()
