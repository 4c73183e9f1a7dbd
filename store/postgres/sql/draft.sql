-- P5: the draft grows under the guard; a chunk that is sent again stays one. The
-- commit of nothing but drafts need not wait for the disk ($6): losing draft text
-- breaks no promise.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[])
        AS u(id, for_version, for_attempt, seq, text)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt, k.seq, k.text
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), held AS MATERIALIZED (
    SELECT g.id, g.version, g.attempt, g.now, g.seq, g.text FROM g
    WHERE g.version = g.for_version AND g.attempt = g.for_attempt AND g.status = 'running' AND g.lease_until > g.now
), i AS (
    INSERT INTO onereply.drafts (task_id, version, seq, text)
    SELECT id, version, seq, text FROM held
    ON CONFLICT (task_id, version, seq) DO UPDATE SET text = excluded.text
)
SELECT g.id, held.version, held.attempt, CASE WHEN $6::boolean THEN set_config('synchronous_commit', 'off', true) END
FROM g LEFT JOIN held ON held.id = g.id
