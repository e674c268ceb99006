-- name: skip_ids
-- Give no job an id that one may have had which this database has forgotten.
-- Twin: a table of sequences here, sequences themselves on PostgreSQL.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'jobs', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'jobs');

UPDATE sqlite_sequence SET seq = seq + :skip WHERE name = 'jobs';
