-- How an attempt ended; one that has an outcome keeps it.
UPDATE attempts SET outcome = :outcome, ended_at = :now, error_code = :error_code, error_message = :error_message
WHERE task_id = :task AND version = :version AND attempt = :attempt AND outcome = ''
