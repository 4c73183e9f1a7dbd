-- The attempt whose answer was accepted, whatever outcome it had before.
UPDATE attempts SET outcome = 'accepted', ended_at = :now, error_code = '', error_message = ''
WHERE task_id = :task AND version = :version AND attempt = :attempt
