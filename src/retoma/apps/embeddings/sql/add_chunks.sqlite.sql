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
