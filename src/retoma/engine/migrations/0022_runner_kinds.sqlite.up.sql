-- What each runner did, by kind too: one runner may work for several applications. Written by the fold alone.
CREATE TABLE runner_kinds (
    boot   text NOT NULL,
    kind   text NOT NULL,
    event  text NOT NULL,
    n      integer NOT NULL,
    ms     real NOT NULL,
    PRIMARY KEY (boot, kind, event)
) STRICT;
