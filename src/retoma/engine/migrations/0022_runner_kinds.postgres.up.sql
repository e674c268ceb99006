-- What each runner did, by kind too: one runner may work for several applications. Written by the fold alone.
CREATE TABLE runner_kinds (
    boot   text COLLATE "C" NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    event  text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    ms     double precision NOT NULL,
    PRIMARY KEY (boot, kind, event)
);
