-- Give documents this metadata in the place of what they had.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
UPDATE embeddings_documents SET metadata = t.metadata
FROM (SELECT value ->> 'document' AS id, value ->> 'metadata' AS metadata FROM json_each(:rows)) t
WHERE embeddings_documents.id = t.id;

DELETE FROM embeddings_metadata
WHERE document IN (SELECT value ->> 'document' FROM json_each(:rows));

INSERT INTO embeddings_metadata (document, collection, key, value)
SELECT r.value ->> 'document', :collection, p.key, p.value
FROM json_each(:rows) r, json_each(r.value -> 'pairs') p;
