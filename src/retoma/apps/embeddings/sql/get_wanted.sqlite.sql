-- What stories are told of their documents, how each collection wants them, and whether they are cut so.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT d.id, d.name, d.text, d.edition, c.edition, c.model, c.version, c.dims, c.size, c.overlap,
       EXISTS (SELECT 1 FROM embeddings_chunks k WHERE k.document = d.id AND k.edition = c.edition)
FROM json_each(:documents) t
CROSS JOIN embeddings_documents d ON d.id = t.value
CROSS JOIN embeddings_collections c ON c.id = d.collection;
