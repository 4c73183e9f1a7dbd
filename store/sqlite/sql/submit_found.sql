-- P1: what the key is bound to, for the loser to compare with.
SELECT fingerprint, task_id, answer FROM submissions WHERE scope = :scope AND action = :action AND key = :key
