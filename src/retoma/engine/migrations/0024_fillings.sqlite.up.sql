-- Submissions too large for one transaction: their jobs stand here until all of them have come in.
CREATE TABLE fillings (
    id           INTEGER PRIMARY KEY,
    key          text NOT NULL UNIQUE,
    owner        text NOT NULL,
    lease_until  integer NOT NULL,
    submission   text NOT NULL,
    jobs         integer NOT NULL DEFAULT 0,
    batch        integer
) STRICT;

CREATE TABLE filling_jobs (
    filling  integer NOT NULL,
    slice    integer NOT NULL,
    place    integer NOT NULL,
    kind     text NOT NULL,
    key      text,
    hash     text,
    limits   text,
    payload  text NOT NULL,
    PRIMARY KEY (filling, slice, place)
) STRICT;

CREATE INDEX filling_jobs_key ON filling_jobs (kind, key) WHERE key IS NOT NULL;

INSERT INTO duties (name) VALUES ('fill');
