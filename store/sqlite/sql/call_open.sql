-- P10: the call an earlier attempt left open.
SELECT number, attempt, operation FROM calls WHERE task_id = :task AND number = :number
