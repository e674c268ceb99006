-- The id of the key that seals here, which nobody else may turn before this is committed.
-- Twin: here a row is locked, there whoever writes is alone.
SELECT value FROM meta WHERE name = 'secret_key' FOR UPDATE;
