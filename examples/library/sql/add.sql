-- P4: the row of a task that has completed, in the transaction that completes it.
INSERT INTO shouts (task, text) VALUES ($1, $2)
