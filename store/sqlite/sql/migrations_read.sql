-- The migrations that have been applied, in order.
SELECT version, name, applied_at FROM schema_migrations ORDER BY version
