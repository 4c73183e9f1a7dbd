-- A new assignment begins its own draft; the earlier ones' text is dropped.
DELETE FROM drafts WHERE task_id = :task AND version < :version
