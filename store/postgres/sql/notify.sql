-- One coalesced hint after commits; never inside a submit.
SELECT pg_notify($1, '')
