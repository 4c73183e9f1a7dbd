-- Where a task stands, for a reader of its draft.
SELECT status, version FROM tasks WHERE id = :task
