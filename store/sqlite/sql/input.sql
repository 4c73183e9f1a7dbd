-- What the task was given.
SELECT input FROM inputs WHERE task_id = :task
