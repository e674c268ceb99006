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
