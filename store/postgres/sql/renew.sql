-- P5: a lease grows only for the current assignment while it is not over, judged
-- by the clock read after the lock; never past the budget's end. The lease of a
-- spent task, whose budget is over already, is plain.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::interval[])
        AS u(id, for_version, for_attempt, lease)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt, k.lease
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), d AS (
    UPDATE onereply.tasks t
    SET lease_until = least(g.now + g.lease, CASE WHEN t.deadline > g.now THEN t.deadline END,
        CASE WHEN t.elapsed_from + t.elapsed_max > g.now THEN t.elapsed_from + t.elapsed_max END)
    FROM g
    WHERE t.id = g.id AND g.version = g.for_version AND g.attempt = g.for_attempt
      AND g.status = 'running' AND g.lease_until > g.now
    RETURNING t.id, t.version, t.attempt, t.lease_until - g.now AS lease_for, g.now
), c AS (
    UPDATE onereply.attempts a
    SET renewals = a.renewals + 1, renewed_first = coalesce(a.renewed_first, d.now), renewed_last = d.now
    FROM d WHERE a.task_id = d.id AND a.version = d.version
)
SELECT g.id, d.version, d.attempt, d.lease_for FROM g LEFT JOIN d ON d.id = g.id
