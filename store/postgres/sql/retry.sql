-- P5, P6, P10: only the current assignment may put the task back; it is due after
-- the delay, and a call that is open stays open for whoever claims it.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::bigint[], $9::bigint[], $10::interval[], $11::text[], $12::boolean[], $13::text[], $14::text[])
        AS u(id, for_version, for_attempt, closed, class, code, requests, input_tokens, output_tokens, delay, outcome, failed, error_code, error_message)
), l AS MATERIALIZED (
    SELECT r.*, k.for_version, k.for_attempt, k.closed, k.class, k.code, k.requests, k.input_tokens, k.output_tokens, k.delay, k.outcome, k.failed, k.error_code, k.error_message
    FROM (SELECT * FROM u ORDER BY id COLLATE "C") k CROSS JOIN LATERAL (
        SELECT t.id, t.version, t.attempt, t.status, t.lease_until FROM onereply.tasks t WHERE t.id = k.id FOR NO KEY UPDATE SKIP LOCKED) r
), g AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS now FROM l
), d AS (
    UPDATE onereply.tasks t
    SET status = 'queued', run_at = g.now + g.delay, lease_until = NULL,
        open_call = coalesce((SELECT max(c.number) FROM onereply.calls c
            WHERE c.task_id = t.id AND c.closed_at IS NULL AND c.number <> g.closed), 0),
        error_code = CASE WHEN g.failed THEN g.error_code ELSE t.error_code END,
        error_message = CASE WHEN g.failed THEN g.error_message ELSE t.error_message END
    FROM g
    WHERE t.id = g.id AND g.version = g.for_version AND g.attempt = g.for_attempt
      AND g.status = 'running' AND g.lease_until > g.now
    RETURNING
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance,
        g.now, g.closed, g.class, g.code, g.requests, g.input_tokens, g.output_tokens, g.outcome, g.failed, g.error_code AS new_code, g.error_message AS new_message
), tried AS (
    UPDATE onereply.attempts a SET outcome = d.outcome, ended_at = d.now, error_code = d.new_code, error_message = d.new_message
    FROM d WHERE a.task_id = d.id AND a.version = d.version AND num_nulls(nullif(a.outcome, '')) <> 0
), closed AS (
    UPDATE onereply.calls c SET closed_at = d.now, class = d.class, code = d.code, requests = d.requests,
        input_tokens = d.input_tokens, output_tokens = d.output_tokens
    FROM d WHERE c.task_id = d.id AND c.number = d.closed AND num_nonnulls(c.closed_at) <> 1
), event AS (
    INSERT INTO onereply.events (task_id, type, version, attempt, why, first_at, last_at, count, worker, code, detail)
    SELECT d.id, 'retried', d.version, d.attempt, '', d.now, d.now, 1, d.worker,
        CASE WHEN d.failed THEN d.new_code ELSE d.outcome END, d.new_message FROM d
    ON CONFLICT (task_id, type, version, attempt, why) DO NOTHING
)
SELECT g.id AS found,
    d.id, d.kind, d.scope, d.status, d.reason, d.error_code, d.error_message, d.version, d.attempt, d.worker,
    d.lease_until, d.run_at, d.created_at, d.ended_at, d.attempts_used, d.attempts_max, d.calls_used,
    d.calls_max, d.open_call, d.elapsed_max, d.elapsed_from, d.deadline, d.on_unknown, d.acceptance,
    i.input
FROM g LEFT JOIN d ON d.id = g.id LEFT JOIN onereply.inputs i ON i.task_id = d.id
