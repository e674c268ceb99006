-- Take texts up that have no vector and that no claim has in hand; who has each now, and which are made.
-- Twin: sets arrive by json_to_recordset here; and here somebody may have written while we waited for a row.
-- The runner's right to each job and its epoch was checked in this transaction.
INSERT INTO embeddings_flights (hash, job, epoch)
SELECT t.hash, t.job, t.epoch
FROM json_to_recordset(CAST(:rows AS json)) AS t(hash text, job bigint, epoch integer)
WHERE NOT EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = t.hash COLLATE "C")
ORDER BY t.hash COLLATE "C"
ON CONFLICT (hash) DO NOTHING;

-- A claim that holds its job no more never will again: whoever finds it so may take up what it left.
UPDATE embeddings_flights SET job = found.taker, epoch = found.under
FROM (SELECT f.hash, f.job, f.epoch, t.job AS taker, t.epoch AS under
      FROM json_to_recordset(CAST(:rows AS json)) AS t(hash text, job bigint, epoch integer)
      JOIN embeddings_flights f ON f.hash = t.hash COLLATE "C"
      WHERE NOT EXISTS (
          SELECT 1 FROM jobs h WHERE h.id = f.job AND h.epoch = f.epoch AND h.state = 'running')) AS found
WHERE embeddings_flights.hash = found.hash AND embeddings_flights.job = found.job
  AND embeddings_flights.epoch = found.epoch;

-- Again, by what is there now: whoever held one may have kept its vector while we waited for the row.
DELETE FROM embeddings_flights f
USING json_to_recordset(CAST(:rows AS json)) AS t(hash text, job bigint, epoch integer)
WHERE f.hash = t.hash COLLATE "C" AND f.job = t.job AND f.epoch = t.epoch
  AND EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = f.hash);

SELECT t.hash, f.job, f.epoch,
       EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = t.hash COLLATE "C")
FROM json_to_recordset(CAST(:rows AS json)) AS t(hash text)
LEFT JOIN embeddings_flights f ON f.hash = t.hash COLLATE "C";
