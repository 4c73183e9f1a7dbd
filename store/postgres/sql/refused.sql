-- Why guarded writes were refused, and the fenced_out event that shows each, with
-- the tokens that were wasted. A cancelled task gets none, nor does one that the
-- assignment has ended itself: that its attempt learns of it is no news. The attempt keeps an outcome it has; late gives it one.
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[], $8::text[], $9::text[])
        AS u(id, version, attempt, class, input_tokens, output_tokens, late, error_code, error_message)
), s AS MATERIALIZED (
    SELECT u.*, clock_timestamp() AS now, CASE WHEN u.late AND a.attempt IS NOT NULL THEN 1 ELSE 0 END AS over, CASE
        WHEN t.status IN ('completed', 'failed', 'cancelled') THEN t.status
        WHEN t.version <> u.version OR t.attempt <> u.attempt THEN 'taken_over'
        WHEN t.status = 'queued' THEN 'put_back' ELSE 'expired' END AS why,
        t.version = u.version AND t.attempt = u.attempt AND t.status IN ('completed', 'failed', 'queued') AS own
    FROM u CROSS JOIN LATERAL (SELECT t.status, t.version, t.attempt FROM onereply.tasks t WHERE t.id = u.id OFFSET 0) t
    LEFT JOIN LATERAL (SELECT a.attempt FROM onereply.attempts a WHERE a.task_id = u.id AND a.version = u.version OFFSET 0) a ON a.attempt = u.attempt
), event AS (
    INSERT INTO onereply.events AS e (task_id, type, version, attempt, why, first_at, last_at, count, code, input_tokens, output_tokens)
    SELECT id, 'fenced_out', version, attempt, why, min(now), max(now), count(*), max(class), sum(input_tokens), sum(output_tokens)
    FROM s WHERE why <> 'cancelled' AND NOT own GROUP BY id, version, attempt, why ORDER BY id, version, attempt, why
    ON CONFLICT (task_id, type, version, attempt, why) DO UPDATE SET last_at = excluded.last_at, count = e.count + excluded.count,
        code = excluded.code, input_tokens = e.input_tokens + excluded.input_tokens, output_tokens = e.output_tokens + excluded.output_tokens
), tried AS (
    UPDATE onereply.attempts a SET outcome = 'fenced_out', ended_at = s.now, error_code = s.error_code, error_message = s.error_message
    FROM s WHERE s.over = 1 AND a.task_id = s.id AND a.version = s.version AND num_nulls(nullif(a.outcome, '')) <> 0
)
SELECT
    t.id, t.kind, t.scope, t.status, t.reason, t.error_code, t.error_message, t.version, t.attempt, t.worker,
    t.lease_until, t.run_at, t.created_at, t.ended_at, t.attempts_used, t.attempts_max, t.calls_used,
    t.calls_max, t.open_call, t.elapsed_max, t.elapsed_from, t.deadline, t.on_unknown, t.acceptance
FROM (SELECT DISTINCT id FROM u) k
CROSS JOIN LATERAL (SELECT * FROM onereply.tasks t WHERE t.id = k.id OFFSET 0) t
