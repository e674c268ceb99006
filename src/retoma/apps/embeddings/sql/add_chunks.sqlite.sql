-- Write down the chunks of a document; what they say is wanted again, if it was not.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_chunks (document, edition, ordinal, begins, ends, text, hash)
SELECT :document, :edition, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
FROM json_each(:rows)
WHERE true
ON CONFLICT (document, edition, ordinal) DO NOTHING;

UPDATE embeddings_vectors SET orphan_at = NULL
WHERE orphan_at IS NOT NULL AND hash IN (
    SELECT k.hash FROM embeddings_chunks k WHERE k.document = :document AND k.edition = :edition);
