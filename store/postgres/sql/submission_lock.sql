-- P1: locks the record of a task's key, so that a submission that waits for it
-- sees what a resume changed.
SELECT s.key FROM onereply.inputs i
JOIN onereply.tasks t ON t.id = i.task_id
JOIN onereply.submissions s ON s.scope = t.scope AND s.action = i.action AND s.key = i.key AND s.task_id = i.task_id
WHERE i.task_id = $1 FOR UPDATE OF s
