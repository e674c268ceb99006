-- name: incarnation
-- Which life of this database: its own id until it is restored, then one for each restore.
SELECT value FROM meta WHERE name IN ('database', 'incarnation') ORDER BY name DESC LIMIT 1;
