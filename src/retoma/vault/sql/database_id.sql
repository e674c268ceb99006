-- The database's own id.
SELECT value FROM meta WHERE name = 'database';
