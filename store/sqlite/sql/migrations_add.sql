-- A migration has been applied, in its own transaction.
INSERT INTO schema_migrations (version, name, applied_at) VALUES (:version, :name, :now)
