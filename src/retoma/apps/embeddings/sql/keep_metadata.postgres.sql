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
