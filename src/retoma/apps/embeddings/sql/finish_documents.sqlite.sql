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
