-- The id of the key that seals here, which nobody else may turn before this is committed.
-- Twin: here whoever writes is alone, there a row is locked.
SELECT value FROM meta WHERE name = 'secret_key';
