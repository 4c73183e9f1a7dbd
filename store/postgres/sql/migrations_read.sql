-- What was applied, in order.
SELECT version, name, applied_at FROM onereply.schema_migrations ORDER BY version
