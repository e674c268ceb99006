-- How long quotes took that ended within a day is asked often: by when they ended, not through all of history.
-- The kind is in it, or SQLite takes the index of all that is done.
CREATE INDEX quotes_ended ON jobs (kind, ended_at) WHERE kind = 'quotes.quote' AND state = 'done';
