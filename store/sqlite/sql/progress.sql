-- P5: state for whoever takes over, under the guard.
INSERT INTO progress (task_id, version, state, recorded_at)
SELECT id, version, :state, :now FROM tasks
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
ON CONFLICT (task_id) DO UPDATE SET version = excluded.version, state = excluded.state, recorded_at = excluded.recorded_at
