-- The database's own id: job 7 of one database is not job 7 of another.
SELECT value FROM meta WHERE name = 'database';
