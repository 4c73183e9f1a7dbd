-- A task's calls in the order in which they were counted.
SELECT number, version, attempt, counted_at, closed_at, class, code, input_tokens, output_tokens,
    operation, checkpointed_at
FROM calls WHERE task_id = :task ORDER BY number
