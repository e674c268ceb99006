-- Pauses of applications, kinds and queues; which kind belongs to which; how often that has changed.
CREATE TABLE kinds (
    name         text COLLATE "C" PRIMARY KEY,
    application  text COLLATE "C" NOT NULL,
    queue        text COLLATE "C" NOT NULL
);

CREATE TABLE pauses (
    scope  text COLLATE "C" NOT NULL CHECK (scope IN ('application', 'kind', 'queue')),
    name   text COLLATE "C" NOT NULL,
    since  timestamptz NOT NULL,
    actor  text NOT NULL,
    why    text,
    PRIMARY KEY (scope, name)
);

INSERT INTO meta (name, value) VALUES ('pauses', '0');
