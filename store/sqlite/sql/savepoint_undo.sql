-- A member that failed is undone alone.
ROLLBACK TO member
