-- What these claims took up is in nobody's hand any more.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
DELETE FROM embeddings_flights
WHERE (job, epoch) IN (SELECT value ->> 'job', value ->> 'epoch' FROM json_each(:rows));
