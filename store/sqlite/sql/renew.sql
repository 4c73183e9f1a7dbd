-- P5: extends the lease to now + lease, never past the end of the budget. The
-- lease of a spent task, whose budget is over already, is plain.
UPDATE tasks SET lease_until = min(:now + :lease,
    CASE WHEN deadline > :now THEN deadline ELSE :now + :lease END,
    CASE WHEN elapsed_max > 0 AND elapsed_from + elapsed_max > :now THEN elapsed_from + elapsed_max ELSE :now + :lease END)
WHERE id = :task AND version = :version AND attempt = :attempt AND status = 'running' AND lease_until > :now
RETURNING lease_until
