-- The schema, before its first table.
CREATE SCHEMA IF NOT EXISTS onereply
