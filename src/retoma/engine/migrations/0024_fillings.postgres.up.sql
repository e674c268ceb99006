-- Submissions too large for one transaction: their jobs stand here until all of them have come in.
CREATE TABLE fillings (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key          text COLLATE "C" NOT NULL UNIQUE,
    owner        text COLLATE "C" NOT NULL,
    lease_until  timestamptz NOT NULL,
    submission   json NOT NULL,
    jobs         bigint NOT NULL DEFAULT 0,
    batch        bigint
);

CREATE TABLE filling_jobs (
    filling  bigint NOT NULL,
    slice    integer NOT NULL,
    place    bigint NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    key      text COLLATE "C",
    hash     text COLLATE "C",
    limits   json,
    payload  json NOT NULL,
    PRIMARY KEY (filling, slice, place)
);

CREATE INDEX filling_jobs_key ON filling_jobs (kind, key) WHERE key IS NOT NULL;

INSERT INTO duties (name) VALUES ('fill');
