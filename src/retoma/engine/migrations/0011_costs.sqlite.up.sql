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
