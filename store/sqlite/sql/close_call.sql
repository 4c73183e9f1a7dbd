-- How a call ended; the first word on it stays.
UPDATE calls SET closed_at = :now, class = :class, code = :code, requests = :requests,
    input_tokens = :input_tokens, output_tokens = :output_tokens
WHERE task_id = :task AND number = :number AND closed_at = 0
