-- name: add_chunks
-- Write down the chunks of documents; what they say is wanted again, if it was not.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_chunks (document, edition, ordinal, begins, ends, text, hash)
SELECT document, edition, ordinal, begins, ends, text, hash
FROM json_to_recordset(CAST(:rows AS json)) AS t(document bigint, edition integer, ordinal integer,
    begins integer, ends integer, text text, hash text)
ON CONFLICT (document, edition, ordinal) DO NOTHING;

UPDATE embeddings_vectors v SET orphan_at = NULL
FROM (SELECT json_array_elements_text(CAST(:hashes AS json)) COLLATE "C" AS hash LIMIT (SELECT 100000)) t
WHERE v.hash = t.hash AND v.orphan_at IS NOT NULL;

-- name: end_flights
-- What these claims took up is in nobody's hand any more.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
DELETE FROM embeddings_flights f
USING json_to_recordset(CAST(:rows AS json)) AS t(job bigint, epoch integer)
WHERE f.job = t.job AND f.epoch = t.epoch;

-- name: finish_documents
-- All chunks of these editions have their vectors: from now on the documents are searched by them.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
UPDATE embeddings_documents d SET edition = t.edition, embedded_at = (SELECT clock()),
    chunks = (SELECT count(*) FROM embeddings_chunks k
              WHERE k.document = t.document AND k.edition = t.edition)
FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(document bigint, edition integer)
      LIMIT (SELECT 1000)) t
WHERE d.id = t.document AND d.edition <= t.edition
  AND NOT EXISTS (
    SELECT 1 FROM embeddings_chunks k
    WHERE k.document = t.document AND k.edition = t.edition
      AND NOT EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = k.hash))
RETURNING d.id, d.edition, d.chunks;

-- name: keep_vectors
-- Keep vectors, cut from one long row of bytes, each once for its content.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_vectors (hash, model, version, dims, vector, job, made_at)
SELECT t.hash, :model, :version, :dims,
       substr(CAST(:vectors AS bytea), CAST(t.nth - 1 AS integer) * 4 * :dims + 1, 4 * :dims), t.job,
       (SELECT clock())
FROM ROWS FROM (json_to_recordset(CAST(:rows AS json)) AS (hash text, job bigint))
     WITH ORDINALITY AS t(hash, job, nth)
ORDER BY t.hash COLLATE "C"
ON CONFLICT (hash) DO NOTHING;

-- name: lock_documents
-- Whoever writes down chunks waits here for whoever deletes the document; those that are there.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT d.id
FROM (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint) AS id LIMIT (SELECT 1000)) t
JOIN embeddings_documents d ON d.id = t.id
ORDER BY d.id FOR NO KEY UPDATE OF d;

-- name: take_flights
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
