-- Shared exclusive things, rates and breakers.
CREATE TABLE pools (
    name       text PRIMARY KEY,
    pick       text NOT NULL CHECK (pick IN ('random', 'oldest')),
    use_cap    integer CHECK (use_cap > 0),
    cool_down  real NOT NULL DEFAULT 0,
    off_after  integer CHECK (off_after > 0),
    healthy    integer NOT NULL DEFAULT 0
) STRICT;

-- A hold has no end of its own: it is over when the job's row says so, or when it was released.
CREATE TABLE pool_items (
    id           INTEGER PRIMARY KEY,
    pool         text NOT NULL REFERENCES pools,
    name         text NOT NULL,
    value        text NOT NULL,
    vendor       text NOT NULL DEFAULT '',
    state        text NOT NULL DEFAULT 'on' CHECK (state IN ('on', 'off')),
    reason       text,
    uses         integer NOT NULL DEFAULT 0,
    failures     integer NOT NULL DEFAULT 0,
    failed_by    text,
    failed_from  integer,
    worked_at    integer,
    score        real NOT NULL DEFAULT 1,
    ready_at     integer,
    used_at      integer,
    last_job     integer,
    job          integer,
    epoch        integer,
    generation   integer,
    scope        text CHECK (scope IN ('attempt', 'job', 'release')),
    UNIQUE (pool, name),
    CHECK ((job IS NULL) = (scope IS NULL))
) STRICT;

CREATE INDEX pool_items_free ON pool_items (pool, used_at) WHERE job IS NULL AND state = 'on';

CREATE INDEX pool_items_held ON pool_items (job) WHERE job IS NOT NULL;

CREATE TABLE rates (
    key     text PRIMARY KEY,
    rate    real NOT NULL CHECK (rate > 0),
    burst   real NOT NULL CHECK (burst >= 1),
    tokens  real NOT NULL,
    at      integer NOT NULL
) STRICT;

CREATE TABLE breakers (
    name       text PRIMARY KEY,
    state      text NOT NULL DEFAULT 'closed' CHECK (state IN ('closed', 'open', 'probing')),
    failures   integer NOT NULL DEFAULT 0,
    threshold  integer NOT NULL CHECK (threshold > 0),
    rest       real NOT NULL CHECK (rest > 0),
    reason     text,
    since      integer,
    probe_at   integer,
    job        integer,
    epoch      integer
) STRICT;
