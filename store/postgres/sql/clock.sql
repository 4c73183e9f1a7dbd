-- The server's time, for rows of the application's own.
SELECT clock_timestamp()
