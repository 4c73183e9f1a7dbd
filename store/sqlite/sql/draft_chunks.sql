-- The chunks of a draft after a position.
SELECT seq, text FROM drafts WHERE task_id = :task AND version = :version AND seq > :seq ORDER BY seq
