-- Keep vectors, cut from one long row of bytes, each once for its content.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_vectors (hash, model, version, dims, vector, job, made_at)
SELECT value ->> 'hash', :model, :version, :dims, substr(:vectors, key * 4 * :dims + 1, 4 * :dims),
       value ->> 'job', (SELECT clock())
FROM json_each(:rows)
WHERE true
ON CONFLICT (hash) DO NOTHING;
