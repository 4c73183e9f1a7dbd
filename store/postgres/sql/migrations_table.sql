-- What was applied.
CREATE TABLE IF NOT EXISTS onereply.schema_migrations (
    version integer NOT NULL PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL)
