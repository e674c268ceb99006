-- Keep vectors, cut from one long row of bytes, each once for its content.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
INSERT INTO embeddings_vectors (hash, model, version, dims, vector, job, made_at)
SELECT t.hash, :model, :version, :dims,
       substr(CAST(:vectors AS bytea), CAST(t.nth - 1 AS integer) * 4 * :dims + 1, 4 * :dims), t.job,
       (SELECT clock())
FROM ROWS FROM (json_to_recordset(CAST(:rows AS json)) AS (hash text, job bigint))
     WITH ORDINALITY AS t(hash, job, nth)
ORDER BY t.hash COLLATE "C"
ON CONFLICT (hash) DO NOTHING;
