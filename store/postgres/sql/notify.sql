-- One coalesced hint after commits, with the name of the process that sends it;
-- never inside a submit.
SELECT pg_notify($1, $2)
