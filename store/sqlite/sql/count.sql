-- P8: a call is counted before it is sent, within the budget and the guard.
UPDATE tasks SET calls_used = calls_used + 1, open_call = calls_used + 1
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
  AND calls_used < calls_max
RETURNING calls_used
