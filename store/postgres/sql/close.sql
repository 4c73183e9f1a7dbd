-- P5: the assignment that closes a call must be current. The first word on how a
-- call ended stays; what stays open is the latest of the calls nobody closed.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::bigint[], $9::bigint[])
        AS u(id, for_version, for_attempt, number, class, code, requests, input_tokens, output_tokens)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt, k.number, k.class, k.code, k.requests, k.input_tokens, k.output_tokens
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), d AS (
    UPDATE onereply.tasks t SET open_call = coalesce((SELECT max(c.number) FROM onereply.calls c
        WHERE c.task_id = t.id AND c.closed_at IS NULL AND c.number <> g.number), 0)
    FROM g
    WHERE t.id = g.id AND g.version = g.for_version AND g.attempt = g.for_attempt
      AND g.status = 'running' AND g.lease_until > g.now
    RETURNING t.id, t.version, t.attempt, g.number, g.class, g.code, g.requests, g.input_tokens, g.output_tokens, g.now
), c AS (
    UPDATE onereply.calls c SET closed_at = d.now, class = d.class, code = d.code, requests = d.requests,
        input_tokens = d.input_tokens, output_tokens = d.output_tokens
    FROM d WHERE c.task_id = d.id AND c.number = d.number AND num_nonnulls(c.closed_at) <> 1
)
SELECT g.id, d.version, d.attempt FROM g LEFT JOIN d ON d.id = g.id
