-- P5, P8: a call is counted under the guard and within the budget, before it is
-- sent. A call that an earlier attempt left open stays unknown (P10). held says
-- that the assignment is good although nothing was counted: the budget is used up.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])
        AS u(id, for_version, for_attempt)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), held AS MATERIALIZED (
    SELECT g.id, g.version, g.attempt, g.now FROM g
    WHERE g.version = g.for_version AND g.attempt = g.for_attempt AND g.status = 'running' AND g.lease_until > g.now
), d AS (
    UPDATE onereply.tasks t SET calls_used = t.calls_used + 1, open_call = t.calls_used + 1
    FROM held WHERE t.id = held.id AND t.version = held.version AND t.attempt = held.attempt
      AND t.status = 'running' AND t.lease_until > held.now AND t.calls_used < t.calls_max
    RETURNING t.id, t.version, t.attempt, t.calls_used, held.now
), c AS (
    UPDATE onereply.calls c SET closed_at = d.now, class = 'unknown'
    FROM d WHERE c.task_id = d.id AND c.version < d.version AND c.closed_at IS NULL
), i AS (
    INSERT INTO onereply.calls (task_id, number, version, attempt, counted_at)
    SELECT d.id, d.calls_used, d.version, d.attempt, d.now FROM d
)
SELECT g.id, held.version, held.attempt, d.calls_used
FROM g LEFT JOIN held ON held.id = g.id LEFT JOIN d ON d.id = g.id
