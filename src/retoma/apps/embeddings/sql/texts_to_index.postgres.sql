-- What these documents say as they are now, chunk by chunk, with its row in the index of words.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id * 32768 + k.ordinal, k.text
FROM embeddings_documents d
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition
WHERE d.id IN (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint));
