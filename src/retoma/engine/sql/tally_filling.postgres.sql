-- Count the jobs that an accepted submission still has to move into its batch, or no longer has to.
-- Twin: the minute of now; SQLite divides microseconds.
INSERT INTO tallies (batch, kind, to_state, event, minute, n)
SELECT :batch, :kind, 'waiting', 'submitted', date_trunc('minute', (SELECT clock())), :jobs;
