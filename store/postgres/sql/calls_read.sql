-- The calls of tasks, in their order.
SELECT task_id, number, version, attempt, counted_at, closed_at, class, code, input_tokens, output_tokens, operation, checkpointed_at
FROM unnest($1::text[]) AS k(id)
CROSS JOIN LATERAL (SELECT * FROM onereply.calls a WHERE a.task_id = k.id OFFSET 0) a ORDER BY task_id, number
