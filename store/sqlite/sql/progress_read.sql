-- What an earlier attempt left for whoever takes over.
SELECT state FROM progress WHERE task_id = :task
