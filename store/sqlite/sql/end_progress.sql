-- A task that cannot be resumed needs no state.
DELETE FROM progress WHERE task_id = :task
