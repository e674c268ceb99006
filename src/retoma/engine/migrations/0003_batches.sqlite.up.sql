-- What people do with batches: dead letters put away, and how fast a batch ends its jobs.

ALTER TABLE jobs ADD COLUMN discarded_at integer;

CREATE INDEX jobs_dead ON jobs (id) WHERE state = 'dead' AND discarded_at IS NULL;

-- How many jobs of a batch ended in a minute; written by the fold alone.
CREATE TABLE batch_pace (
    batch   integer NOT NULL,
    minute  integer NOT NULL,
    n       integer NOT NULL,
    PRIMARY KEY (batch, minute)
) STRICT;
