-- P5: waits for the row, so that the guarded statement that follows in the same
-- transaction finds it locked by us and reads its clock after the wait.
SELECT id FROM onereply.tasks WHERE id = $1 FOR NO KEY UPDATE
