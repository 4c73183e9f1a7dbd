-- The mark as committed, for readers.
SELECT mark FROM clock WHERE id = 1
