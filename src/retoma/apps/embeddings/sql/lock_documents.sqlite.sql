-- Whoever writes down chunks waits here for whoever deletes the document; those that are there.
-- Twin: rows are locked one by one there, always in the same order; SQLite has one writer.
SELECT id FROM embeddings_documents WHERE id IN (SELECT value FROM json_each(:documents));
