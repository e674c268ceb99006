-- name: documents_of_jobs
-- Which documents these jobs are for, and in which collections those are.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.job, d.id, d.name, c.name
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
WHERE d.job IN (SELECT value FROM json_each(:jobs));

-- name: add_documents
-- Write down documents, in order; nobody takes them up before their jobs are submitted.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_documents (collection, name, sha256, text, created_by, created_at)
SELECT :collection, value ->> 'name', value ->> 'sha256', value ->> 'text', :actor, (SELECT clock())
FROM json_each(:rows) ORDER BY key
RETURNING id;

-- name: find_named
-- Which documents of a collection have these names.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT id, name, sha256, job FROM embeddings_documents
WHERE collection = :collection AND name IN (SELECT value FROM json_each(:names));

-- name: get_wanted
-- What stories are told of their documents, how each collection wants them, and whether they are cut so.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id, d.name, d.text, d.edition AS has, c.edition, c.model, c.version, c.dims, c.size, c.overlap,
       EXISTS (SELECT 1 FROM embeddings_chunks k WHERE k.document = d.id AND k.edition = c.edition)
FROM json_each(:documents) t
CROSS JOIN embeddings_documents d ON d.id = t.value
CROSS JOIN embeddings_collections c ON c.id = d.collection;

-- name: keep_metadata
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
