-- People look for what did not end well: lists of it stay short however long the history is.
-- Few jobs end so, and each enters once in a generation; one that is done touches nothing here.
CREATE INDEX jobs_ends ON jobs (kind, state, id)
    WHERE state IN ('parked', 'skipped', 'dead', 'canceled');
