-- P5: state for whoever takes over, under the guard.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bytea[])
        AS u(id, for_version, for_attempt, state)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt, k.state
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), held AS MATERIALIZED (
    SELECT g.id, g.version, g.attempt, g.now, g.state FROM g
    WHERE g.version = g.for_version AND g.attempt = g.for_attempt AND g.status = 'running' AND g.lease_until > g.now
), i AS (
    INSERT INTO onereply.progress (task_id, version, state, recorded_at)
    SELECT id, version, state, now FROM held
    ON CONFLICT (task_id) DO UPDATE SET version = excluded.version, state = excluded.state, recorded_at = excluded.recorded_at
)
SELECT g.id, held.version, held.attempt FROM g LEFT JOIN held ON held.id = g.id
