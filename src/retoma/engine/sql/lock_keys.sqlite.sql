-- Wait until nobody else is submitting keys of this kind, and let nobody until the end of the transaction.
-- Twin: here there is one writer; PostgreSQL takes a lock.
SELECT 1;
