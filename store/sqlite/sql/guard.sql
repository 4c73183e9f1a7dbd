-- P5: whether an assignment is current, of a running task, with its lease not over.
SELECT open_call, calls_used, calls_max FROM tasks
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
