-- The draft goes in the transaction that ends the task.
DELETE FROM drafts WHERE task_id = :task
