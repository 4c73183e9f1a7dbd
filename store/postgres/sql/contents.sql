-- What the tasks were given, and what they produced.
SELECT i.task_id, i.input, r.response, r.attempt, r.version, r.accepted_at
FROM onereply.inputs i LEFT JOIN onereply.responses r ON r.task_id = i.task_id WHERE i.task_id = ANY($1::text[])
