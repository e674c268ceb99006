-- name: documents_of_jobs
-- Which documents these jobs are for, and in which collections those are.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.job, d.id, d.name, c.name
FROM embeddings_documents d JOIN embeddings_collections c ON c.id = d.collection
WHERE d.job IN (SELECT CAST(json_array_elements_text(CAST(:jobs AS json)) AS bigint));

-- name: add_documents
-- Write down documents, in order; nobody takes them up before their jobs are submitted.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_documents (collection, name, sha256, text, created_by, created_at)
SELECT :collection, t.name, t.sha256, t.text, :actor, (SELECT clock())
FROM ROWS FROM (json_to_recordset(CAST(:rows AS json)) AS (name text, sha256 text, text text))
    WITH ORDINALITY AS t(name, sha256, text, nth)
ORDER BY t.nth
RETURNING id;

-- name: find_named
-- Which documents of a collection have these names.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT id, name, sha256, job FROM embeddings_documents
WHERE collection = :collection
  AND name IN (SELECT json_array_elements_text(CAST(:names AS json)) COLLATE "C");

-- name: get_wanted
-- What stories are told of their documents, how each collection wants them, and whether they are cut so.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id, d.name, d.text, d.edition AS has, c.edition, c.model, c.version, c.dims, c.size, c.overlap,
       EXISTS (SELECT 1 FROM embeddings_chunks k WHERE k.document = d.id AND k.edition = c.edition)
FROM (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint) AS id LIMIT (SELECT 1000)) t
JOIN embeddings_documents d ON d.id = t.id
JOIN embeddings_collections c ON c.id = d.collection;

-- name: keep_metadata
-- Give documents this metadata in the place of what they had.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
UPDATE embeddings_documents d SET metadata = t.metadata
FROM json_to_recordset(CAST(:rows AS json)) AS t(document bigint, metadata text)
WHERE d.id = t.document;

DELETE FROM embeddings_metadata m
USING (SELECT CAST(value ->> 'document' AS bigint) AS id FROM json_array_elements(CAST(:rows AS json))) t
WHERE m.document = t.id;

INSERT INTO embeddings_metadata (document, collection, key, value)
SELECT CAST(r.value ->> 'document' AS bigint), :collection, p.key, p.value
FROM json_array_elements(CAST(:rows AS json)) r, json_each_text(r.value -> 'pairs') p;
