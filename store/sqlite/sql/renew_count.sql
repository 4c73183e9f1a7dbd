-- The timeline shows renewals as one counted entry.
UPDATE attempts SET renewals = renewals + 1, renewed_last = :now,
    renewed_first = CASE renewed_first WHEN 0 THEN :now ELSE renewed_first END
WHERE task_id = :task AND version = :version
