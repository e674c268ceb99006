-- Profiles: what a request to the writer may name.
CREATE TABLE writer_profiles (
    name text PRIMARY KEY,
    asked text NOT NULL UNIQUE,         -- table, schema, conflict key and path: what a request names
    document text NOT NULL,
    put_by text NOT NULL,
    put_at integer NOT NULL
) STRICT;
