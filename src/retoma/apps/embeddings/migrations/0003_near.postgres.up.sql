-- Vectors as pgvector can index them, where the database has it; the table itself needs no extension.
ALTER TABLE embeddings_documents ADD COLUMN vector_edition integer NOT NULL DEFAULT 0;

CREATE INDEX embeddings_documents_unplaced ON embeddings_documents (collection)
WHERE vector_edition <> edition;

-- model: a digest of its name, version and dims, so that an index has vectors of one length alone.
CREATE TABLE embeddings_near (
    document    bigint NOT NULL REFERENCES embeddings_documents (id) ON DELETE CASCADE,
    ordinal     integer NOT NULL,
    collection  bigint NOT NULL,
    model       text COLLATE "C" NOT NULL,
    near        real[] NOT NULL,
    PRIMARY KEY (document, ordinal)
);
