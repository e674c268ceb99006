-- Count the jobs that an accepted submission still has to move into its batch, or no longer has to.
-- Twin: the minute of now; PostgreSQL truncates a timestamp.
INSERT INTO tallies (batch, kind, to_state, event, minute, n)
SELECT :batch, :kind, 'waiting', 'submitted', (SELECT clock()) / 60000000 * 60000000, :jobs;
