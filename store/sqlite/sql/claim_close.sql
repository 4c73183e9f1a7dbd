-- A takeover closes the attempt it took from; one that has an outcome keeps it.
UPDATE attempts SET outcome = 'lease_expired', ended_at = :now
WHERE task_id = :task AND version = :version AND outcome = ''
