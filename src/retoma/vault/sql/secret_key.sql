-- The id of the key that seals here; no row before the first secret.
SELECT value FROM meta WHERE name = 'secret_key';
