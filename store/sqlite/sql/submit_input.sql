-- P2: what the task was given, and the key that leads back to its record.
INSERT INTO inputs (task_id, action, key, input) VALUES (:task, :action, :key, :input)
