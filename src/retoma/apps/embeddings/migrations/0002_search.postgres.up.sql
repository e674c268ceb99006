-- Documents have metadata to filter by; the words of chunks are indexed behind their vectors.
ALTER TABLE embeddings_documents ADD COLUMN metadata text NOT NULL DEFAULT '{}';

-- The edition whose words are in the index; 0 where none is.
ALTER TABLE embeddings_documents ADD COLUMN keyword_edition integer NOT NULL DEFAULT 0;

CREATE INDEX embeddings_documents_unindexed ON embeddings_documents (collection)
WHERE keyword_edition <> edition;

-- One row for each pair, values as text.
CREATE TABLE embeddings_metadata (
    document    bigint NOT NULL,
    collection  bigint NOT NULL,
    key         text COLLATE "C" NOT NULL,
    value       text COLLATE "C" NOT NULL,
    PRIMARY KEY (document, key)
);

CREATE INDEX embeddings_metadata_value ON embeddings_metadata (collection, key, value);

-- rowid: the document times 32768, plus the ordinal of the chunk. The text itself stays with the chunks.
CREATE TABLE embeddings_words (
    rowid       bigint PRIMARY KEY,
    collection  bigint NOT NULL,
    words       tsvector NOT NULL
);

CREATE INDEX embeddings_words_words ON embeddings_words USING gin (words);
