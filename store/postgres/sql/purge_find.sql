-- Whether there may be anything to remove: whether the oldest entries are past
-- their retention. It takes no lock and reads two index entries.
SELECT coalesce((SELECT s.expires_at FROM onereply.submissions s ORDER BY s.expires_at LIMIT 1) <= statement_timestamp(), false),
    coalesce((SELECT t.ended_at FROM onereply.tasks t WHERE t.ended_at IS NOT NULL ORDER BY t.ended_at LIMIT 1) <= statement_timestamp() - $1::interval, false)
