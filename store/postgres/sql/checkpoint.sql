-- P5, P10: the provider-side id by which the open call can be looked up again.
-- saved is null where the assignment is good but no call is open.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[])
        AS u(id, for_version, for_attempt, operation)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt, k.operation
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), d AS (
    UPDATE onereply.tasks t SET open_call = t.open_call
    FROM g
    WHERE t.id = g.id AND g.version = g.for_version AND g.attempt = g.for_attempt
      AND g.status = 'running' AND g.lease_until > g.now
    RETURNING t.id, t.version, t.attempt, t.open_call, g.operation, g.now
), c AS (
    UPDATE onereply.calls c SET operation = d.operation, checkpointed_at = d.now
    FROM d WHERE c.task_id = d.id AND c.number = d.open_call
    RETURNING c.task_id
)
SELECT g.id, d.version, d.attempt, c.task_id AS saved
FROM g LEFT JOIN d ON d.id = g.id LEFT JOIN c ON c.task_id = g.id
