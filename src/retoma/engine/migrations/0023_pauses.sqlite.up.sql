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
