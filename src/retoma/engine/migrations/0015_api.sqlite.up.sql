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

CREATE INDEX audit_at ON audit (at, id);

-- What people do to jobs is little beside what runners do: those have an epoch.
CREATE INDEX events_commands ON events (at, job, seq)
    WHERE type IN ('again', 'unparked', 'discarded', 'cancel_requested')
       OR (type IN ('canceled', 'skipped') AND epoch IS NULL);
