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

INSERT INTO duties (name) VALUES ('alerts'), ('notify');
