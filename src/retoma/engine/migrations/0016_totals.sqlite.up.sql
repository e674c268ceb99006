-- What ever happened, by kind and by runner. It only grows: whoever looks now and then misses nothing.

-- What a claim began or ended with; states alone do not tell: a retry and a snooze look alike.
ALTER TABLE tallies ADD COLUMN event text;

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
