-- What was taken over from a database of the document's shape, so that nothing is taken over twice.
CREATE TABLE ads_adopted (
    source  text NOT NULL,
    sort    text NOT NULL CHECK (sort IN
                ('workers', 'proxies', 'writers', 'missions', 'mission_logs')),
    old     text NOT NULL,
    new     text,
    PRIMARY KEY (source, sort, old)
) STRICT, WITHOUT ROWID;
