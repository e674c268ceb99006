-- Steps may be known to have failed, and remote work to have ended.
-- A CHECK cannot be changed here: the table is made anew.
CREATE TABLE steps_now (
    job         integer NOT NULL,
    name        text NOT NULL,
    version     integer NOT NULL,
    key         text NOT NULL,
    generation  integer NOT NULL,
    epoch       integer NOT NULL,
    state       text NOT NULL CHECK (state IN ('begun', 'saved', 'failed', 'ended')),
    begun_at    integer,
    saved_at    integer,
    value       text,
    cost        text,
    PRIMARY KEY (job, name, version, key)
) STRICT;

INSERT INTO steps_now SELECT * FROM steps;

DROP TABLE steps;

ALTER TABLE steps_now RENAME TO steps;
