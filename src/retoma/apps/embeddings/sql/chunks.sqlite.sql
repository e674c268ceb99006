-- name: add_chunks
-- Write down the chunks of documents; what they say is wanted again, if it was not.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_chunks (document, edition, ordinal, begins, ends, text, hash)
SELECT value ->> 'document', value ->> 'edition', value ->> 'ordinal', value ->> 'begins',
       value ->> 'ends', value ->> 'text', value ->> 'hash'
FROM jsonb_each(:rows)
WHERE true
ON CONFLICT (document, edition, ordinal) DO NOTHING;

UPDATE embeddings_vectors SET orphan_at = NULL
WHERE orphan_at IS NOT NULL AND hash IN (SELECT value FROM json_each(:hashes));

-- name: end_flights
-- What these claims took up is in nobody's hand any more.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
DELETE FROM embeddings_flights
WHERE (job, epoch) IN (SELECT value ->> 'job', value ->> 'epoch' FROM json_each(:rows));

-- name: finish_documents
-- All chunks of these editions have their vectors: from now on the documents are searched by them.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
UPDATE embeddings_documents SET edition = t.edition, embedded_at = (SELECT clock()),
    chunks = (SELECT count(*) FROM embeddings_chunks k
              WHERE k.document = t.document AND k.edition = t.edition)
FROM (SELECT value ->> 'document' AS document, value ->> 'edition' AS edition
      FROM json_each(:rows)) t
WHERE id = t.document AND embeddings_documents.edition <= t.edition
  AND NOT EXISTS (
    SELECT 1 FROM embeddings_chunks k
    WHERE k.document = t.document AND k.edition = t.edition
      AND NOT EXISTS (SELECT 1 FROM embeddings_vectors v WHERE v.hash = k.hash))
RETURNING id, embeddings_documents.edition, embeddings_documents.chunks;

-- name: keep_vectors
-- Keep vectors, cut from one long row of bytes, each once for its content.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_vectors (hash, model, version, dims, vector, job, made_at)
SELECT value ->> 'hash', :model, :version, :dims, substr(:vectors, key * 4 * :dims + 1, 4 * :dims),
       value ->> 'job', (SELECT clock())
FROM json_each(:rows)
WHERE true
ON CONFLICT (hash) DO NOTHING;

-- name: lock_documents
-- Whoever writes down chunks waits here for whoever deletes the document; those that are there.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT id FROM embeddings_documents WHERE id IN (SELECT value FROM json_each(:documents));

-- name: take_flights
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
