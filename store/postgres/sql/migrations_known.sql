-- Whether anything was ever applied.
SELECT to_regclass($1)::text
