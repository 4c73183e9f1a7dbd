-- P5: the draft grows under the guard; a chunk that is sent again stays one.
INSERT INTO drafts (task_id, version, seq, text)
SELECT id, version, :seq, :text FROM tasks
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
ON CONFLICT (task_id, version, seq) DO UPDATE SET text = excluded.text
