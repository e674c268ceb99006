-- Everything the engine remembers. Times are microseconds since 1970, values canonical JSON text.
CREATE TABLE batches (
    id          INTEGER PRIMARY KEY,
    name        text NOT NULL,
    key         text UNIQUE,
    kind        text NOT NULL,
    first_job   integer,
    last_job    integer,
    created_at  integer NOT NULL,
    paused_at   integer
) STRICT;

CREATE INDEX batches_paused ON batches (id) WHERE paused_at IS NOT NULL;

CREATE TABLE runners (
    boot         text PRIMARY KEY,
    name         text NOT NULL,
    host         text NOT NULL,
    pid          integer NOT NULL,
    pid_started  text NOT NULL,
    version      text NOT NULL,
    state        text NOT NULL CHECK (state IN ('alive', 'leaving', 'gone', 'lost')),
    since        integer NOT NULL,
    beat_at      integer NOT NULL,
    lease_until  integer NOT NULL,
    slots        integer NOT NULL,
    knows        text NOT NULL,
    trouble      text,
    drain_at     integer
) STRICT;

-- Who holds a job is asked by the name of its runner, and whose lease is over by when it ends.
CREATE INDEX runners_name ON runners (name);

CREATE INDEX runners_lease ON runners (lease_until);

CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    kind          text NOT NULL,
    version       integer NOT NULL,
    queue         text NOT NULL,
    batch         integer,
    key           text,
    payload_hash  text,
    generation    integer NOT NULL DEFAULT 1,
    fresh_from    integer NOT NULL DEFAULT 1,
    state         text NOT NULL DEFAULT 'waiting' CHECK (state IN
                      ('waiting', 'running', 'parked', 'done', 'skipped', 'dead', 'canceled')),
    reason        text,
    code          text,
    priority      integer NOT NULL DEFAULT 0,
    turn          integer,
    run_at        integer,
    aside         text,
    limit_key     text,
    epoch         integer NOT NULL DEFAULT 0,
    runner        text,
    failures      integer NOT NULL DEFAULT 0,
    lost          integer NOT NULL DEFAULT 0,
    released      integer NOT NULL DEFAULT 0,
    seq           integer NOT NULL DEFAULT 1,
    checkpoint    text,
    progress      real,
    note          text,
    progress_at   integer,
    cancel_at     integer,
    deadline      integer,
    correlation   text,
    traceparent   text,
    payload       text NOT NULL,
    result        text,
    created_at    integer NOT NULL,
    started_at    integer,
    ended_at      integer,
    discarded_at  integer,
    CHECK ((state = 'running') = (runner IS NOT NULL))
) STRICT;

CREATE INDEX jobs_waiting ON jobs (queue, priority, turn, id)
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2;

CREATE INDEX jobs_suspect ON jobs (queue, priority, turn, id)
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2;

CREATE INDEX jobs_not_due ON jobs (queue, run_at) WHERE state = 'waiting' AND turn IS NULL;

CREATE INDEX jobs_aside ON jobs (aside, priority, turn, id)
    WHERE state = 'waiting' AND aside IS NOT NULL;

-- Never `WHERE state = 'running'`: every fence says that, and would read it from end to end.
CREATE INDEX jobs_held ON jobs (runner) WHERE runner IS NOT NULL;

CREATE UNIQUE INDEX jobs_key ON jobs (kind, key) WHERE key IS NOT NULL;

-- The jobs of a batch lie between its first and last id; only the unusual ends need an index.
CREATE INDEX jobs_batch ON jobs (batch, state, id)
    WHERE batch IS NOT NULL AND state IN ('parked', 'skipped', 'dead', 'canceled');

CREATE INDEX jobs_dead ON jobs (id) WHERE state = 'dead' AND discarded_at IS NULL;

-- People look for what did not end well: lists of it stay short however long the history is.
-- Few jobs end so, and each enters once in a generation; one that is done touches nothing here.
CREATE INDEX jobs_ends ON jobs (kind, state, id)
    WHERE state IN ('parked', 'skipped', 'dead', 'canceled');

-- The done jobs of a kind are listed without walking past all others.
-- A job enters once in a generation, when it is done.
CREATE INDEX jobs_done ON jobs (kind, id) WHERE state = 'done';

CREATE TABLE events (
    job      integer NOT NULL,
    seq      integer NOT NULL,
    epoch    integer,
    type     text NOT NULL,
    at       integer NOT NULL,
    actor    text,
    details  text,
    PRIMARY KEY (job, seq)
) STRICT;

-- What people do to jobs is little beside what runners do: those have an epoch.
CREATE INDEX events_commands ON events (at, job, seq)
    WHERE type IN ('again', 'unparked', 'discarded', 'cancel_requested')
       OR (type IN ('canceled', 'skipped') AND epoch IS NULL);

CREATE TRIGGER events_are_immutable BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are never changed; they go when their job has gone');
END;

CREATE TRIGGER events_outlive_their_job BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job)
BEGIN
    SELECT RAISE(ABORT, 'events are never changed; they go when their job has gone');
END;

CREATE TABLE audit (
    id       INTEGER PRIMARY KEY,
    at       integer NOT NULL,
    actor    text,
    verb     text NOT NULL,
    subject  text NOT NULL,
    details  text
) STRICT;

CREATE INDEX audit_at ON audit (at, id);

CREATE TABLE evidence (
    sha256     text PRIMARY KEY,
    codec      text NOT NULL,
    size       integer NOT NULL,
    bytes      blob,
    place      text,
    stored_at  integer,
    used_at    integer NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE job_evidence (
    job       integer NOT NULL,
    name      text NOT NULL,
    epoch     integer NOT NULL,
    media     text NOT NULL,
    sha256    text NOT NULL REFERENCES evidence,
    at        integer NOT NULL,
    cut_from  integer,
    PRIMARY KEY (job, name, epoch)
) STRICT;

CREATE INDEX job_evidence_sha256 ON job_evidence (sha256);

CREATE TABLE limits (
    key      text PRIMARY KEY,
    cap      integer NOT NULL CHECK (cap >= 0),
    used     integer NOT NULL DEFAULT 0 CHECK (used >= 0),
    by_hand  integer
) STRICT;

-- Appended by every statement that moves jobs; nobody ever updates one, so nobody waits.
CREATE TABLE tallies (
    id          INTEGER PRIMARY KEY,
    runner      text,
    batch       integer,
    kind        text NOT NULL,
    from_state  text,
    to_state    text NOT NULL,
    code        text,
    minute      integer NOT NULL,
    bucket      integer,
    n           integer NOT NULL,
    ms          real,
    event       text
) STRICT;

CREATE TABLE counts (
    batch  integer NOT NULL,
    kind   text NOT NULL,
    state  text NOT NULL,
    code   text NOT NULL,
    n      integer NOT NULL,
    PRIMARY KEY (batch, kind, state, code)
) STRICT;

CREATE TABLE pace (
    kind    text NOT NULL,
    minute  integer NOT NULL,
    state   text NOT NULL,
    code    text NOT NULL,
    bucket  integer NOT NULL,
    n       integer NOT NULL,
    ms      real NOT NULL,
    PRIMARY KEY (kind, minute, state, code, bucket)
) STRICT;

CREATE TABLE duties (
    name  text PRIMARY KEY,
    boot  text,
    term  integer NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE schedules (
    name       text PRIMARY KEY,
    kind       text NOT NULL,
    cron       text NOT NULL,
    timezone   text NOT NULL,
    payload    text NOT NULL,
    missed     text NOT NULL,
    paused_at  integer,
    next_at    integer,
    version    integer NOT NULL DEFAULT 1,
    queue      text NOT NULL DEFAULT '',
    priority   integer NOT NULL DEFAULT 0,
    limits     text NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE ticks (
    schedule  text NOT NULL,
    at        integer NOT NULL,
    job       integer,
    PRIMARY KEY (schedule, at)
) STRICT;

-- How many jobs of a batch ended in a minute; written by the fold alone.
CREATE TABLE batch_pace (
    batch   integer NOT NULL,
    minute  integer NOT NULL,
    n       integer NOT NULL,
    PRIMARY KEY (batch, minute)
) STRICT;

INSERT INTO duties (name) VALUES ('fold'), ('retention'), ('schedule'), ('alerts'), ('notify'), ('fill');

-- Said once by an application, heeded by whichever runner does the retention.
CREATE TABLE refers (
    table_name   text NOT NULL,
    column_name  text NOT NULL,
    what         text NOT NULL CHECK (what IN ('job', 'batch')),
    PRIMARY KEY (table_name, column_name)
) STRICT;

-- Places whose bytes nobody needs: removed after their rows, so that no row ever misses its bytes.
CREATE TABLE places_left (
    place  text PRIMARY KEY,
    at     integer NOT NULL
) STRICT;

CREATE TRIGGER evidence_leaves_its_place AFTER DELETE ON evidence
WHEN OLD.place IS NOT NULL
BEGIN
    INSERT INTO places_left (place, at) VALUES (OLD.place, clock()) ON CONFLICT (place) DO NOTHING;
END;

CREATE TRIGGER evidence_moves_in AFTER UPDATE OF place ON evidence
WHEN OLD.place IS NOT NULL AND NEW.place IS NULL
BEGIN
    INSERT INTO places_left (place, at) VALUES (OLD.place, clock()) ON CONFLICT (place) DO NOTHING;
END;

-- Steps may be known to have failed, and remote work to have ended.
-- A CHECK cannot be changed here: the table is made anew.
CREATE TABLE steps (
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
    worked_by    text,
    failed_at    integer,
    UNIQUE (pool, name),
    CHECK ((job IS NULL) = (scope IS NULL))
) STRICT;

CREATE INDEX pool_items_free ON pool_items (pool, used_at) WHERE job IS NULL AND state = 'on';

CREATE INDEX pool_items_held ON pool_items (job) WHERE job IS NOT NULL;

CREATE TABLE rates (
    key         text PRIMARY KEY,
    rate        real NOT NULL CHECK (rate > 0),
    burst       real NOT NULL CHECK (burst >= 1),
    tokens      real NOT NULL,
    at          integer NOT NULL,
    bound       real CHECK (bound > 0),
    adaptive    integer NOT NULL DEFAULT 0 CHECK (adaptive IN (0, 1)),
    ceiling     real,
    cuts        integer NOT NULL DEFAULT 0,
    passed      integer NOT NULL DEFAULT 0,
    blocked     integer NOT NULL DEFAULT 0,
    usual       real,
    refused     integer NOT NULL DEFAULT 0,
    recorded    real,
    looked_at   integer,
    refused_at  integer
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

-- What work costs: charges and their sums, prices, exchange rates, budgets; and what is used again.
-- Money is whole billionths; a price is a decimal, kept as text.

-- Appended with a save or a settling; nobody ever updates one, so nobody waits.
CREATE TABLE charges (
    id           INTEGER PRIMARY KEY,
    at           integer NOT NULL,
    job          integer NOT NULL,
    batch        integer,
    kind         text NOT NULL,
    application  text NOT NULL,
    provider     text NOT NULL,
    model        text NOT NULL,
    unit         text NOT NULL,
    sort         text NOT NULL CHECK (sort IN ('spent', 'saved')),
    amount       integer NOT NULL CHECK (amount > 0)
) STRICT;

CREATE TABLE costs (
    scope     text NOT NULL CHECK (scope IN
                  ('job', 'batch', 'kind', 'application', 'provider', 'all')),
    name      text NOT NULL,
    period    text NOT NULL,
    provider  text NOT NULL,
    model     text NOT NULL,
    unit      text NOT NULL,
    sort      text NOT NULL,
    amount    integer NOT NULL,
    PRIMARY KEY (scope, name, period, provider, model, unit, sort)
) STRICT;

CREATE TABLE prices (
    provider  text NOT NULL,
    model     text NOT NULL,
    unit      text NOT NULL,
    since     integer NOT NULL,
    amount    text NOT NULL,
    currency  text NOT NULL CHECK (currency IN ('usd', 'brl')),
    per       integer NOT NULL CHECK (per > 0),
    actor     text NOT NULL,
    PRIMARY KEY (provider, model, unit, since)
) STRICT;

CREATE TABLE exchange (
    since        integer PRIMARY KEY,
    brl_per_usd  text NOT NULL,
    actor        text NOT NULL
) STRICT;

-- Named as the gate behind which jobs wait while it is spent; shut in a period, until its end.
CREATE TABLE budgets (
    gate        text PRIMARY KEY,
    scope       text NOT NULL CHECK (scope IN ('batch', 'application', 'provider')),
    name        text NOT NULL,
    per         text NOT NULL CHECK (per IN ('whole', 'day', 'month')),
    nanos       integer NOT NULL CHECK (nanos > 0),
    currency    text NOT NULL CHECK (currency IN ('usd', 'brl')),
    warned      text,
    shut        text,
    shut_until  integer
) STRICT;

CREATE INDEX budgets_of ON budgets (scope, name);

CREATE TABLE reuse (
    hash      text PRIMARY KEY,
    kind      text NOT NULL,
    step      text NOT NULL,
    version   integer NOT NULL,
    key       text NOT NULL,
    key_hash  text NOT NULL,
    value     text NOT NULL,
    cost      text,
    job       integer NOT NULL,
    at        integer NOT NULL
) STRICT;

CREATE INDEX reuse_of ON reuse (kind, step, at, hash);

CREATE INDEX reuse_at ON reuse (at);

-- Which ready jobs a dispatcher was told of, and when: so that none is hinted without end.
-- No key to jobs: a row means nothing after a minute, and goes.
CREATE TABLE hints (
    job        integer PRIMARY KEY,
    epoch      integer NOT NULL,
    queue      text NOT NULL,
    hinted_at  integer NOT NULL
) STRICT;

CREATE INDEX hints_hinted_at ON hints (hinted_at);

-- Who may do what: people, their keys, sign-in links and sessions; and secrets, sealed.
CREATE TABLE people (
    id          INTEGER PRIMARY KEY,
    name        text NOT NULL,
    role        text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    created_at  integer NOT NULL,
    removed_at  integer
) STRICT;

-- A name belongs to one person at a time; of those who are gone only the audit log tells.
CREATE UNIQUE INDEX people_name ON people (name) WHERE removed_at IS NULL;

-- Of every token only its SHA-256 is here.
CREATE TABLE api_keys (
    id           text PRIMARY KEY,
    person       integer NOT NULL REFERENCES people,
    role         text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    label        text NOT NULL,
    hash         text NOT NULL,
    created_at   integer NOT NULL,
    created_by   text NOT NULL,
    expires_at   integer,
    used_at      integer,
    revoked_at   integer,
    replaced_by  text
) STRICT;

CREATE INDEX api_keys_person ON api_keys (person);

CREATE TABLE sign_in_links (
    id          text PRIMARY KEY,
    person      integer NOT NULL REFERENCES people,
    role        text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    hash        text NOT NULL,
    created_at  integer NOT NULL,
    expires_at  integer NOT NULL,
    used_at     integer
) STRICT;

CREATE INDEX sign_in_links_person ON sign_in_links (person);

CREATE INDEX sign_in_links_expires_at ON sign_in_links (expires_at);

CREATE TABLE sign_in_sessions (
    id          text PRIMARY KEY,
    person      integer NOT NULL REFERENCES people,
    role        text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    hash        text NOT NULL,
    agent       text NOT NULL,
    created_at  integer NOT NULL,
    seen_at     integer NOT NULL,
    expires_at  integer NOT NULL,
    ended_at    integer
) STRICT;

CREATE INDEX sign_in_sessions_person ON sign_in_sessions (person);

CREATE INDEX sign_in_sessions_expires_at ON sign_in_sessions (expires_at);

-- One secret of one column of one row of whatever table; `key` is the id of the key that seals it.
CREATE TABLE secrets (
    owner   text NOT NULL,
    field   text NOT NULL,
    row     text NOT NULL,
    ref     text NOT NULL,
    key     text,
    last4   text,
    set_at  integer NOT NULL,
    set_by  text NOT NULL,
    PRIMARY KEY (owner, field, row)
) STRICT;

CREATE INDEX secrets_key ON secrets (key) WHERE key IS NOT NULL;

-- What the API needs: answers given once, and what people did, by time.
CREATE TABLE answers (
    actor   text NOT NULL,
    key     text NOT NULL,
    what    text NOT NULL,
    hash    text NOT NULL,
    answer  text,
    at      integer NOT NULL,
    PRIMARY KEY (actor, key)
) STRICT;

CREATE INDEX answers_at ON answers (at);

-- Written by the fold alone.
CREATE TABLE totals (
    kind    text NOT NULL,
    event   text NOT NULL,
    bucket  integer NOT NULL,
    n       integer NOT NULL,
    ms      real NOT NULL,
    PRIMARY KEY (kind, event, bucket)
) STRICT;

CREATE TABLE runner_totals (
    boot   text NOT NULL,
    event  text NOT NULL,
    n      integer NOT NULL,
    ms     real NOT NULL,
    PRIMARY KEY (boot, event)
) STRICT;

CREATE VIEW attempts AS
SELECT c.job, c.epoch, c.actor AS runner, c.at AS claimed_at, e.at AS ended_at,
       CASE WHEN e.type IS NULL OR e.type <> 'buried' THEN e.type
            WHEN e.details ->> 'reason' = 'poison' THEN 'lost'
            ELSE 'failed' END AS ended,
       e.details
FROM events c
LEFT JOIN events e ON e.job = c.job AND e.epoch = c.epoch AND e.type IN
    ('done', 'skipped', 'failed', 'buried', 'lost', 'released', 'snoozed', 'parked', 'canceled')
WHERE c.type = 'claimed';

-- What somebody should know of: raised once, closed once, told to whoever wants to hear of it.
CREATE TABLE alerts (
    id               INTEGER PRIMARY KEY,
    rule             text NOT NULL,
    subject          text NOT NULL,
    severity         text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    details          text NOT NULL,
    since            integer NOT NULL,
    closed_at        integer,
    acknowledged_at  integer,
    acknowledged_by  text,
    silenced_until   integer,
    silenced_by      text,
    raised_told_at   integer,
    closed_told_at   integer
) STRICT;

-- Of one rule about one subject there is one at a time.
CREATE UNIQUE INDEX alerts_open ON alerts (rule, subject) WHERE closed_at IS NULL;

CREATE INDEX alerts_of ON alerts (rule, subject, silenced_until) WHERE silenced_until IS NOT NULL;

CREATE INDEX alerts_raised ON alerts (since) WHERE raised_told_at IS NULL;

CREATE INDEX alerts_closed ON alerts (closed_at) WHERE closed_told_at IS NULL AND closed_at IS NOT NULL;

-- What people have set while work goes on; what nobody has set is at its default.
CREATE TABLE knobs (
    name        text PRIMARY KEY,
    value       text NOT NULL,
    changed_at  integer NOT NULL,
    changed_by  text NOT NULL
) STRICT;

-- What each runner did, by kind too: one runner may work for several applications. Written by the fold alone.
CREATE TABLE runner_kinds (
    boot   text NOT NULL,
    kind   text NOT NULL,
    event  text NOT NULL,
    n      integer NOT NULL,
    ms     real NOT NULL,
    PRIMARY KEY (boot, kind, event)
) STRICT;

-- Pauses of applications, kinds and queues; which kind belongs to which; how often that has changed.
CREATE TABLE kinds (
    name         text PRIMARY KEY,
    application  text NOT NULL,
    queue        text NOT NULL
) STRICT;

CREATE TABLE pauses (
    scope  text NOT NULL CHECK (scope IN ('application', 'kind', 'queue')),
    name   text NOT NULL,
    since  integer NOT NULL,
    actor  text NOT NULL,
    why    text,
    PRIMARY KEY (scope, name)
) STRICT;

INSERT INTO meta (name, value) VALUES ('pauses', '0');

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
