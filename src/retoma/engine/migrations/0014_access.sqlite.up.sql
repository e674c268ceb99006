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
