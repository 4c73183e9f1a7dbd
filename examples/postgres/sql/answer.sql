-- P4: the answer, in the transaction that completes the task.
UPDATE public.tickets SET task = $2, answer = $3 WHERE id = $1
