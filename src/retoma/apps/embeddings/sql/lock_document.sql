-- Whoever writes down chunks waits here for whoever deletes the document.
UPDATE embeddings_documents SET chunks = chunks WHERE id = :document RETURNING id;
