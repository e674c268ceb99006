-- Take texts up that have no vector and that no claim has in hand; those that are this claim's now.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_flights (hash, job, epoch)
SELECT value, :job, :epoch FROM json_each(:hashes)
WHERE NOT EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = value)
  AND EXISTS (SELECT 1 FROM jobs j WHERE j.id = :job AND j.epoch = :epoch AND j.state = 'running')
ON CONFLICT (hash) DO NOTHING;

-- A claim that holds its job no more never will again: whoever finds it so may take up what it left.
UPDATE embeddings_flights SET job = :job, epoch = :epoch
FROM (SELECT f.hash, f.job, f.epoch FROM embeddings_flights f
      WHERE f.hash IN (SELECT value FROM json_each(:hashes)) AND NOT EXISTS (
          SELECT 1 FROM jobs h WHERE h.id = f.job AND h.epoch = f.epoch AND h.state = 'running')) AS found
WHERE embeddings_flights.hash = found.hash AND embeddings_flights.job = found.job
  AND embeddings_flights.epoch = found.epoch
  AND EXISTS (SELECT 1 FROM jobs j WHERE j.id = :job AND j.epoch = :epoch AND j.state = 'running');

-- Again, by what is there now: whoever held one may have kept its vector while we waited for the row.
DELETE FROM embeddings_flights
WHERE job = :job AND epoch = :epoch
  AND EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = embeddings_flights.hash);

SELECT hash FROM embeddings_flights WHERE job = :job AND epoch = :epoch;
