-- What was taken over from a database of the document's shape, so that nothing is taken over twice.
CREATE TABLE ads_adopted (
    source  text COLLATE "C" NOT NULL,
    sort    text COLLATE "C" NOT NULL CHECK (sort IN
                ('workers', 'proxies', 'writers', 'missions', 'mission_logs')),
    old     text COLLATE "C" NOT NULL,
    new     text COLLATE "C",
    PRIMARY KEY (source, sort, old)
);
