-- name: lock_keys
-- Wait until nobody else is submitting keys of this kind, and let nobody until the end of the transaction.
-- Twin: SQLite has one writer.
SELECT 1 FROM (SELECT pg_advisory_xact_lock(5918112, hashtext(:kind))) AS locked;

-- name: staged_keys
-- Which of these keys stand in submissions that are still coming in.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT key, hash, filling FROM filling_jobs
WHERE kind = :kind AND key = ANY(ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))));

-- name: stage_jobs
-- Add the jobs of one slice to a submission that is still coming in.
-- Twin: sets of rows arrive by json_array_elements here, by jsonb_each there.
INSERT INTO filling_jobs (filling, slice, place, kind, key, hash, limits, payload)
SELECT :filling, :slice, :offset + sent.place - 1, :kind, sent.row ->> 'key', sent.row ->> 'hash',
       sent.row -> 'limits', sent.row -> 'payload'
FROM json_array_elements(CAST(:rows AS json)) WITH ORDINALITY AS sent(row, place);

-- name: tally_filling
-- Count the jobs that an accepted submission still has to move into its batch, or no longer has to.
-- Twin: the minute of now; SQLite divides microseconds.
INSERT INTO tallies (batch, kind, to_state, event, minute, n)
SELECT :batch, :kind, 'waiting', 'submitted', date_trunc('minute', (SELECT clock())), :jobs;
