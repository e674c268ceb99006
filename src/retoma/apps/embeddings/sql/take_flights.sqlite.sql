-- Take texts up that have no vector and that no claim has in hand; who has each now, and which are made.
-- Twin: sets arrive by json_each here; and there somebody may have written while a row was waited for.
-- The runner's right to each job and its epoch was checked in this transaction.
INSERT INTO embeddings_flights (hash, job, epoch)
SELECT value ->> 'hash', value ->> 'job', value ->> 'epoch' FROM json_each(:rows)
WHERE NOT EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = value ->> 'hash')
ON CONFLICT (hash) DO NOTHING;

-- A claim that holds its job no more never will again: whoever finds it so may take up what it left.
UPDATE embeddings_flights SET job = found.taker, epoch = found.under
FROM (SELECT f.hash, t.value ->> 'job' AS taker, t.value ->> 'epoch' AS under
      FROM json_each(:rows) t CROSS JOIN embeddings_flights f ON f.hash = t.value ->> 'hash'
      WHERE NOT EXISTS (
          SELECT 1 FROM jobs h WHERE h.id = f.job AND h.epoch = f.epoch AND h.state = 'running')) AS found
WHERE embeddings_flights.hash = found.hash;

SELECT t.value ->> 'hash', f.job, f.epoch,
       EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = t.value ->> 'hash')
FROM json_each(:rows) t LEFT JOIN embeddings_flights f ON f.hash = t.value ->> 'hash';
