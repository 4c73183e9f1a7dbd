-- The program's own table, beside the engine's in one file.
CREATE TABLE IF NOT EXISTS shouts (task TEXT PRIMARY KEY, text TEXT NOT NULL)
