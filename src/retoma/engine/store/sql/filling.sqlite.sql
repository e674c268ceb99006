-- name: lock_keys
-- Wait until nobody else is submitting keys of this kind, and let nobody until the end of the transaction.
-- Twin: here there is one writer; PostgreSQL takes a lock.
SELECT 1;

-- name: staged_keys
-- Which of these keys stand in submissions that are still coming in.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
SELECT key, hash, filling FROM filling_jobs
WHERE kind = :kind AND key IN (SELECT value FROM json_each(:keys));

-- name: stage_jobs
-- Add the jobs of one slice to a submission that is still coming in.
-- Twin: sets of rows arrive by json_array_elements there, by jsonb_each here.
INSERT INTO filling_jobs (filling, slice, place, kind, key, hash, limits, payload)
SELECT :filling, :slice, :offset + o.key, :kind, o.value ->> 'key', o.value ->> 'hash',
       o.value -> 'limits', o.value -> 'payload'
FROM jsonb_each(:rows) o;

-- name: tally_filling
-- Count the jobs that an accepted submission still has to move into its batch, or no longer has to.
-- Twin: the minute of now; PostgreSQL truncates a timestamp.
INSERT INTO tallies (batch, kind, to_state, event, minute, n)
SELECT :batch, :kind, 'waiting', 'submitted', (SELECT clock()) / 60000000 * 60000000, :jobs;
