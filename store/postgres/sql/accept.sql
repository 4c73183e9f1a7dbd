-- P3, P4, P5: only the current assignment, before its lease is over by the clock
-- read after the lock, completes the task and fills its slot.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::bigint[], $9::bigint[], $10::text[])
        AS u(id, for_version, for_attempt, closed, class, code, requests, input_tokens, output_tokens, response)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt, k.closed, k.class, k.code, k.requests, k.input_tokens, k.output_tokens, k.response
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), d AS (
    UPDATE onereply.tasks t
    SET status = 'completed', reason = '', error_code = '', error_message = '', lease_until = NULL, open_call = 0, ended_at = g.now
    FROM g
    WHERE t.id = g.id AND g.version = g.for_version AND g.attempt = g.for_attempt
      AND g.status = 'running' AND g.lease_until > g.now
    RETURNING
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance,
        g.now, g.closed, g.class, g.code, g.requests, g.input_tokens, g.output_tokens, g.response
), slot AS (
    INSERT INTO onereply.responses (task_id, version, attempt, response, accepted_at)
    SELECT id, version, attempt, response, now FROM d
), tried AS (
    UPDATE onereply.attempts a
    SET outcome = CASE WHEN a.version = d.version THEN 'accepted' ELSE 'fenced_out' END, ended_at = d.now
    FROM d WHERE a.task_id = d.id AND (a.version = d.version OR a.outcome = '')
), closed AS (
    UPDATE onereply.calls c SET closed_at = d.now,
        class = CASE WHEN c.number = d.closed THEN d.class ELSE 'unknown' END,
        code = CASE WHEN c.number = d.closed THEN d.code ELSE c.code END,
        requests = CASE WHEN c.number = d.closed THEN d.requests ELSE c.requests END,
        input_tokens = CASE WHEN c.number = d.closed THEN d.input_tokens ELSE c.input_tokens END,
        output_tokens = CASE WHEN c.number = d.closed THEN d.output_tokens ELSE c.output_tokens END
    FROM d WHERE d.calls_used > 0 AND c.task_id = d.id AND c.closed_at IS NULL
), drafted AS (
    DELETE FROM onereply.drafts x USING d WHERE x.task_id = d.id
), progressed AS (
    DELETE FROM onereply.progress x USING d WHERE x.task_id = d.id
)
SELECT g.id AS found,
    d.id, d.kind, d.scope, d.status, d.reason, d.error_code, d.error_message, d.version, d.attempt, d.worker,
    d.lease_until, d.run_at, d.created_at, d.ended_at, d.attempts_used, d.attempts_max, d.calls_used,
    d.calls_max, d.open_call, d.elapsed_max, d.elapsed_from, d.deadline, d.on_unknown, d.acceptance,
    i.input
FROM g LEFT JOIN d ON d.id = g.id LEFT JOIN onereply.inputs i ON i.task_id = d.id
