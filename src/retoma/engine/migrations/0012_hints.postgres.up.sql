-- Which ready jobs a dispatcher was told of, and when: so that none is hinted without end.
-- No key to jobs: a row means nothing after a minute, and goes.
CREATE TABLE hints (
    job        bigint PRIMARY KEY,
    epoch      integer NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    hinted_at  timestamptz NOT NULL
);

CREATE INDEX hints_hinted_at ON hints (hinted_at);
