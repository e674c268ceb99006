-- Wait until nobody else is submitting keys of this kind, and let nobody until the end of the transaction.
-- Twin: SQLite has one writer.
SELECT 1 FROM (SELECT pg_advisory_xact_lock(5918112, hashtext(:kind))) AS locked;
