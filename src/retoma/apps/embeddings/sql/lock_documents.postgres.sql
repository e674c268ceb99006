-- Whoever writes down chunks waits here for whoever deletes the document; those that are there.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
SELECT d.id
FROM (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint) AS id LIMIT (SELECT 1000)) t
JOIN embeddings_documents d ON d.id = t.id
ORDER BY d.id FOR NO KEY UPDATE OF d;
