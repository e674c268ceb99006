-- Put the words of documents into the index, in the place of what was there of them.
-- Twin: the index is a table of FTS5 on SQLite, a column of tsvector on PostgreSQL.
DELETE FROM embeddings_words WHERE rowid IN (
    SELECT w.rowid FROM json_each(:documents) t
    JOIN embeddings_words w ON w.rowid BETWEEN t.value * 32768 AND t.value * 32768 + 32767);

INSERT INTO embeddings_words (rowid, collection, words)
SELECT value ->> 0, 'c' || :collection, value ->> 1 FROM json_each(:rows);

UPDATE embeddings_documents SET keyword_edition = edition
WHERE id IN (SELECT value FROM json_each(:documents));
