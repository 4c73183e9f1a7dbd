-- A task that has ended has no attempt under way.
UPDATE attempts SET outcome = :outcome, ended_at = :now WHERE task_id = :task AND outcome = ''
