-- The done jobs of a kind are listed without walking past all others.
-- A job enters once in a generation, when it is done.
CREATE INDEX jobs_done ON jobs (kind, id) WHERE state = 'done';
