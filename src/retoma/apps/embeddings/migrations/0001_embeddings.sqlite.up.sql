-- Collections, their documents, chunks and vectors; the document's table of jobs is a view over the engine's.
-- A vector is kept once for its content, whoever asks for it. A document is searched by the chunks of its
-- own edition: those of the one before stay until all of the next have their vectors.
CREATE TABLE embeddings_collections (
    id          integer PRIMARY KEY AUTOINCREMENT,
    name        text NOT NULL CHECK (name <> ''),
    model       text NOT NULL,
    version     text NOT NULL,
    dims        integer NOT NULL CHECK (dims > 0),
    size        integer NOT NULL CHECK (size > 0),
    overlap     integer NOT NULL CHECK (overlap >= 0 AND overlap < size),
    edition     integer NOT NULL DEFAULT 1,
    batch       integer,
    created_by  text NOT NULL,
    created_at  integer NOT NULL
) STRICT;

CREATE UNIQUE INDEX embeddings_collections_name ON embeddings_collections (name);

-- `edition` is the one that all chunks have vectors of, 0 until there is one.
CREATE TABLE embeddings_documents (
    id               integer PRIMARY KEY AUTOINCREMENT,
    collection       integer NOT NULL,
    name             text NOT NULL CHECK (name <> ''),
    sha256           text NOT NULL,
    text             text NOT NULL CHECK (text <> ''),
    chunks           integer NOT NULL DEFAULT 0,
    edition          integer NOT NULL DEFAULT 0,
    job              integer,
    created_by       text NOT NULL,
    created_at       integer NOT NULL,
    embedded_at      integer,
    metadata         text NOT NULL DEFAULT '{}',
    keyword_edition  integer NOT NULL DEFAULT 0,
    vector_edition   integer NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX embeddings_documents_name ON embeddings_documents (collection, name);

CREATE UNIQUE INDEX embeddings_documents_job ON embeddings_documents (job);

CREATE INDEX embeddings_documents_edition ON embeddings_documents (collection, edition, id);

-- What was embedded lately is found without reading what was embedded before: search keeps up with it.
CREATE INDEX embeddings_documents_embedded ON embeddings_documents (collection, embedded_at);

CREATE INDEX embeddings_documents_unindexed ON embeddings_documents (collection)
WHERE keyword_edition <> edition;

CREATE TABLE embeddings_chunks (
    document  integer NOT NULL,
    edition   integer NOT NULL,
    ordinal   integer NOT NULL,
    begins    integer NOT NULL,
    ends      integer NOT NULL,
    text      text NOT NULL,
    hash      text NOT NULL,
    PRIMARY KEY (document, edition, ordinal)
) STRICT;

CREATE INDEX embeddings_chunks_hash ON embeddings_chunks (hash);

-- One of these for each text, model, version and dims (W5); little-endian float32, of length one.
CREATE TABLE embeddings_vectors (
    hash       text PRIMARY KEY,
    model      text NOT NULL,
    version    text NOT NULL,
    dims       integer NOT NULL,
    vector     blob NOT NULL,
    job        integer NOT NULL,
    made_at    integer NOT NULL,
    orphan_at  integer,
    CHECK (length(vector) = 4 * dims)
) STRICT;

-- What no chunk says any more; it is deleted later, unless one says it again.
CREATE INDEX embeddings_vectors_orphan ON embeddings_vectors (orphan_at) WHERE orphan_at IS NOT NULL;

-- Who is having a text embedded; it holds as long as that very claim of that job does.
CREATE TABLE embeddings_flights (
    hash   text PRIMARY KEY,
    job    integer NOT NULL,
    epoch  integer NOT NULL
) STRICT;

CREATE INDEX embeddings_flights_job ON embeddings_flights (job);

CREATE VIEW queue_jobs AS
SELECT j.id, j.kind AS "jobType",
       CASE j.state WHEN 'running' THEN 'processing' WHEN 'done' THEN 'completed'
            WHEN 'skipped' THEN 'completed' WHEN 'dead' THEN 'failed'
            WHEN 'canceled' THEN 'failed' ELSE 'pending' END AS status,
       j.failures + CASE WHEN j.state = 'done' THEN 1 ELSE 0 END AS attempts,
       5 AS "maxAttempts",
       r.name AS "lockedBy",
       strftime('%Y-%m-%d %H:%M:%f', CASE WHEN j.runner IS NOT NULL THEN j.started_at END / 1e6, 'unixepoch') AS "lockedAt",
       strftime('%Y-%m-%d %H:%M:%f', r.lease_until / 1e6, 'unixepoch') AS "lockExpiresAt",
       strftime('%Y-%m-%d %H:%M:%f', r.beat_at / 1e6, 'unixepoch') AS "lastHeartbeatAt",
       strftime('%Y-%m-%d %H:%M:%f', j.started_at / 1e6, 'unixepoch') AS "processingStartedAt",
       strftime('%Y-%m-%d %H:%M:%f', j.ended_at / 1e6, 'unixepoch') AS "processedAt",
       strftime('%Y-%m-%d %H:%M:%f', j.created_at / 1e6, 'unixepoch') AS "createdAt",
       strftime('%Y-%m-%d %H:%M:%f', j.run_at / 1e6, 'unixepoch') AS "runAt",
       CAST(j.payload ->> 'document' AS integer) AS "documentId",
       CASE WHEN j.state = 'canceled' THEN 'canceled' ELSE j.code END AS "errorCode",
       j.correlation AS "correlationId"
FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
WHERE j.kind = 'embeddings.document';

CREATE TRIGGER queue_jobs_insert INSTEAD OF INSERT ON queue_jobs
BEGIN SELECT raise(ABORT, 'queue_jobs is a view: use the API, /api/embeddings'); END;

CREATE TRIGGER queue_jobs_update INSTEAD OF UPDATE ON queue_jobs
BEGIN SELECT raise(ABORT, 'queue_jobs is a view: use the API, /api/embeddings'); END;

CREATE TRIGGER queue_jobs_delete INSTEAD OF DELETE ON queue_jobs
BEGIN SELECT raise(ABORT, 'queue_jobs is a view: use the API, /api/embeddings'); END;

INSERT INTO rates (key, rate, burst, tokens, at)
VALUES ('embeddings.provider', 50, 50, 50, (SELECT clock()));

INSERT INTO breakers (name, threshold, rest) VALUES ('embeddings.provider', 5, 30);

-- One row for each pair, values as text.
CREATE TABLE embeddings_metadata (
    document    integer NOT NULL,
    collection  integer NOT NULL,
    key         text NOT NULL,
    value       text NOT NULL,
    PRIMARY KEY (document, key)
) STRICT;

CREATE INDEX embeddings_metadata_value ON embeddings_metadata (collection, key, value);

-- rowid: the document times 32768, plus the ordinal of the chunk. The text itself stays with the chunks.
CREATE VIRTUAL TABLE embeddings_words USING fts5(
    collection, words, content = '', contentless_delete = 1, tokenize = 'unicode61'
);

-- The document asks its queue by status: as the view queue_jobs says it, word for word.
CREATE INDEX embeddings_jobs_status ON jobs (
    (CASE state WHEN 'running' THEN 'processing' WHEN 'done' THEN 'completed'
          WHEN 'skipped' THEN 'completed' WHEN 'dead' THEN 'failed'
          WHEN 'canceled' THEN 'failed' ELSE 'pending' END), id)
WHERE kind = 'embeddings.document';
