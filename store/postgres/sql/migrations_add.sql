-- One migration was applied.
INSERT INTO onereply.schema_migrations (version, name, applied_at) VALUES ($1, $2, clock_timestamp())
