-- A member of a shared transaction begins; it can be undone alone.
SAVEPOINT member
