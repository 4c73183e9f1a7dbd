-- How long until a claim could find work: the next queued task of each kind, and
-- the running one whose lease ends first. The sub-selects are for one plan to serve
-- all sizes, as in claim.sql.
SELECT min(w.at) IS NOT NULL, min(w.at) - clock_timestamp() FROM (
    SELECT q.at FROM unnest((SELECT $1::text[])) AS k(kind) CROSS JOIN LATERAL (
        SELECT t.run_at AS at FROM onereply.tasks t WHERE t.status = 'queued' AND t.kind = k.kind ORDER BY t.run_at LIMIT 1) q
    UNION ALL
    SELECT e.at FROM unnest((SELECT $1::text[])) AS k(kind) CROSS JOIN LATERAL (
        SELECT t.lease_until AS at FROM onereply.tasks t WHERE t.status = 'running' AND t.kind = k.kind ORDER BY t.lease_until LIMIT 1) e
) w
