-- Documents of a collection that have all of these pairs of metadata.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT m.document
FROM json_each_text(CAST(:pairs AS json)) t
JOIN embeddings_metadata m ON m.collection = :collection AND m.key = t.key AND m.value = t.value
GROUP BY m.document HAVING count(*) = :n;
