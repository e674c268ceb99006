-- name: documents_with
-- Documents of a collection that have all of these pairs of metadata.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT m.document
FROM json_each_text(CAST(:pairs AS json)) t
JOIN embeddings_metadata m ON m.collection = :collection AND m.key = t.key AND m.value = t.value
GROUP BY m.document HAVING count(*) = :n;

-- name: find_words
-- The chunks of a collection that say most of these words, by their rows in the index: a rare word counts more.
-- Twin: PostgreSQL ranks without regard to how rare a word is, so that is added up here.
WITH found AS (
    SELECT w.rowid, t.nth
    FROM json_array_elements_text(CAST(:terms AS json)) WITH ORDINALITY AS t(term, nth)
    JOIN embeddings_words w ON w.collection = :collection AND w.words @@ CAST(t.term AS tsquery)
    WHERE CAST(:documents AS text) IS NULL OR w.rowid / 32768 IN (
        SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint))
), weights AS (
    SELECT nth, ln(1 + (SELECT count(DISTINCT rowid) FROM found) / (0.5 + count(*))) AS weight
    FROM found GROUP BY nth
)
SELECT f.rowid FROM found f JOIN weights g ON g.nth = f.nth
GROUP BY f.rowid ORDER BY sum(g.weight) DESC, f.rowid LIMIT :n;

-- name: index_words
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

-- name: texts_to_index
-- What these documents say as they are now, chunk by chunk, with its row in the index of words.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id * 32768 + k.ordinal, k.text
FROM embeddings_documents d
JOIN embeddings_chunks k ON k.document = d.id AND k.edition = d.edition
WHERE d.id IN (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint));

-- name: unindexed_documents
-- Documents of a collection whose words are not in the index as they are now, but those that somebody else is indexing.
-- Twin: rows are locked one by one here; SQLite has one writer.
SELECT id, edition, chunks FROM embeddings_documents
WHERE collection = :collection AND keyword_edition <> edition
ORDER BY id LIMIT :n FOR NO KEY UPDATE SKIP LOCKED;
