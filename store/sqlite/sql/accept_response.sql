-- P3: the slot is filled once; a second row cannot be.
INSERT INTO responses (task_id, version, attempt, response, accepted_at)
VALUES (:task, :version, :attempt, :response, :now)
