-- The calls of tasks, in their order.
SELECT task_id, number, version, attempt, counted_at, closed_at, class, code, input_tokens, output_tokens, operation, checkpointed_at
FROM onereply.calls WHERE task_id = ANY($1::text[]) ORDER BY task_id, number
