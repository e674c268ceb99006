-- Put the words of documents into the index, in the place of what was there of them.
-- Twin: the index is a column of tsvector on PostgreSQL, a table of FTS5 on SQLite.
DELETE FROM embeddings_words w
USING (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint) AS id) t
WHERE w.rowid BETWEEN t.id * 32768 AND t.id * 32768 + 32767;

INSERT INTO embeddings_words (rowid, collection, words)
SELECT CAST(value ->> 0 AS bigint), :collection, to_tsvector('simple', value ->> 1)
FROM json_array_elements(CAST(:rows AS json));

UPDATE embeddings_documents SET keyword_edition = edition
WHERE id IN (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint));
