-- What the tasks were given, and what they produced.
SELECT i.task_id, i.input, r.response, r.attempt, r.version, r.accepted_at
FROM unnest($1::text[]) AS k(id)
CROSS JOIN LATERAL (SELECT * FROM onereply.inputs i WHERE i.task_id = k.id OFFSET 0) i
LEFT JOIN LATERAL (SELECT * FROM onereply.responses r WHERE r.task_id = k.id OFFSET 0) r ON true
