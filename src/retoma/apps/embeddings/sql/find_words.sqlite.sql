-- The chunks of a collection that say most of these words, by their rows in the index.
-- Twin: the index is a table of FTS5 on SQLite, which ranks by itself.
SELECT rowid FROM embeddings_words
WHERE embeddings_words MATCH :terms
  AND (CAST(:documents AS text) IS NULL OR rowid / 32768 IN (SELECT value FROM json_each(:documents)))
ORDER BY bm25(embeddings_words, 0.0, 1.0), rowid LIMIT :n;
