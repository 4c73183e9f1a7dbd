-- The isolation of a statement that is a transaction by itself.
SELECT current_setting('default_transaction_isolation')
