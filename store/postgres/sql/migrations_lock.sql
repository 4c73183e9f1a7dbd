-- Migrations of one schema take turns.
SELECT pg_advisory_xact_lock(hashtextextended('onereply: migrations of schema ' || $1, 0))
