-- Whether there is anything to remove; it takes no lock.
SELECT EXISTS (SELECT 1 FROM onereply.submissions s WHERE s.expires_at <= statement_timestamp()
        AND NOT EXISTS (SELECT 1 FROM onereply.tasks t WHERE t.id = s.task_id AND t.status IN ('queued', 'running'))),
    EXISTS (SELECT 1 FROM onereply.tasks t WHERE t.ended_at <= statement_timestamp() - $1::interval
        AND NOT EXISTS (SELECT 1 FROM onereply.inputs i
            JOIN onereply.submissions s ON s.scope = t.scope AND s.action = i.action AND s.key = i.key AND s.task_id = t.id
            WHERE i.task_id = t.id))
