-- name: documents_with
-- Documents of a collection that have all of these pairs of metadata.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT m.document
FROM json_each(:pairs) t
JOIN embeddings_metadata m ON m.collection = :collection AND m.key = t.key AND m.value = t.value
GROUP BY m.document HAVING count(*) = :n;

-- name: find_words
-- The chunks of a collection that say most of these words, by their rows in the index.
-- Twin: the index is a table of FTS5 on SQLite, which ranks by itself.
SELECT rowid FROM embeddings_words
WHERE embeddings_words MATCH :terms
  AND (CAST(:documents AS text) IS NULL OR rowid / 32768 IN (SELECT value FROM json_each(:documents)))
ORDER BY bm25(embeddings_words, 0.0, 1.0), rowid LIMIT :n;

-- name: index_words
-- Put the words of documents into the index, in the place of what was there of them.
-- Twin: the index is a table of FTS5 on SQLite, a column of tsvector on PostgreSQL.
DELETE FROM embeddings_words WHERE rowid IN (
    SELECT w.rowid FROM json_each(:documents) t
    JOIN embeddings_words w ON w.rowid BETWEEN t.value * 32768 AND t.value * 32768 + 32767);

INSERT INTO embeddings_words (rowid, collection, words)
SELECT value ->> 0, 'c' || :collection, value ->> 1 FROM json_each(:rows);

UPDATE embeddings_documents SET keyword_edition = edition
WHERE id IN (SELECT value FROM json_each(:documents));

-- name: texts_to_index
-- What these documents say as they are now, chunk by chunk, with its row in the index of words.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id * 32768 + k.ordinal, k.text
FROM json_each(:documents) t
JOIN embeddings_documents d ON d.id = t.value
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition;

-- name: unindexed_documents
-- Documents of a collection whose words are not in the index as they are now.
-- Twin: rows are locked one by one on PostgreSQL; SQLite has one writer.
SELECT id, edition, chunks FROM embeddings_documents
WHERE collection = :collection AND keyword_edition <> edition
ORDER BY id LIMIT :n;
