-- Steps that leave no column, in the transaction of the step; repeated, counted.
INSERT INTO onereply.events AS e (task_id, type, version, attempt, why, first_at, last_at, count, worker, code, detail)
SELECT id, type, version, attempt, '', now, now, 1, worker, code, detail
FROM (SELECT u.*, coalesce(u.at, clock_timestamp()) AS now
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[])
        AS u(id, type, version, attempt, at, worker, code, detail)) s
ORDER BY id
ON CONFLICT (task_id, type, version, attempt, why) DO UPDATE SET
    last_at = excluded.last_at, count = e.count + 1, code = excluded.code, detail = excluded.detail
