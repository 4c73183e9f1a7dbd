-- Where tasks stand, and the chunks their readers lack: after the sequence given
-- where the version is the reader's, else all of the version.
SELECT u.ord, t.status, t.version, x.seq, x.text
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS u(id, version, seq, ord)
CROSS JOIN LATERAL (SELECT t.id, t.status, t.version FROM onereply.tasks t WHERE t.id = u.id OFFSET 0) t
LEFT JOIN LATERAL (SELECT x.seq, x.text FROM onereply.drafts x WHERE x.task_id = t.id AND x.version = t.version
    AND t.status IN ('queued', 'running') AND x.seq > CASE WHEN t.version = u.version THEN u.seq ELSE 0 END OFFSET 0) x ON true
ORDER BY u.ord, x.seq
