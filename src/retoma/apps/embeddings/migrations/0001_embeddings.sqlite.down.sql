-- What was embedded stays, and what was paid for it; the jobs stay as a plain table.
DELETE FROM breakers WHERE name = 'embeddings.provider';

DELETE FROM rates WHERE key = 'embeddings.provider';

DROP TABLE IF EXISTS queue_jobs_kept;

CREATE TABLE queue_jobs_kept AS SELECT * FROM queue_jobs;

DROP VIEW queue_jobs;

DROP TABLE embeddings_words;

DROP TABLE embeddings_metadata;

DROP INDEX embeddings_documents_unindexed;

DROP INDEX embeddings_jobs_status;

DROP TABLE embeddings_flights;

DROP INDEX embeddings_collections_name;

DROP INDEX embeddings_documents_name;

DROP INDEX embeddings_documents_job;

DROP INDEX embeddings_documents_edition;

DROP INDEX embeddings_documents_embedded;

DROP INDEX embeddings_chunks_hash;

DROP INDEX embeddings_vectors_orphan;

DROP TABLE IF EXISTS embeddings_collections_kept;

ALTER TABLE embeddings_collections RENAME TO embeddings_collections_kept;

DROP TABLE IF EXISTS embeddings_documents_kept;

ALTER TABLE embeddings_documents RENAME TO embeddings_documents_kept;

DROP TABLE IF EXISTS embeddings_chunks_kept;

ALTER TABLE embeddings_chunks RENAME TO embeddings_chunks_kept;

DROP TABLE IF EXISTS embeddings_vectors_kept;

ALTER TABLE embeddings_vectors RENAME TO embeddings_vectors_kept;
