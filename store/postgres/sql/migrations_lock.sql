-- Migrations of one schema take turns.
SELECT pg_advisory_xact_lock(hashtextextended('onereply migrations ' || $1, 0))
