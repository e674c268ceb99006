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
