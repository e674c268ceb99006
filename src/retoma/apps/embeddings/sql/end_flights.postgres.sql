-- What these claims took up is in nobody's hand any more.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
DELETE FROM embeddings_flights f
USING json_to_recordset(CAST(:rows AS json)) AS t(job bigint, epoch integer)
WHERE f.job = t.job AND f.epoch = t.epoch;
