-- A step that leaves no column, in the transaction of the step; repeated, it
-- is counted.
INSERT INTO events (task_id, type, version, attempt, why, first_at, last_at, count, worker, code, detail, input_tokens, output_tokens)
VALUES (:task, :type, :version, :attempt, :why, :now, :now, 1, :worker, :code, :detail, :input_tokens, :output_tokens)
ON CONFLICT (task_id, type, version, attempt, why) DO UPDATE SET
    last_at = excluded.last_at, count = count + 1, code = excluded.code, detail = excluded.detail,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens
