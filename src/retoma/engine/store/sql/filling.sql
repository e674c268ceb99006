-- name: accept_filling
-- All jobs of a submission have come in: from now on they are jobs of this batch.
UPDATE fillings SET batch = :batch, lease_until = clock_in(:lease) WHERE id = :filling;

-- name: begin_filling
-- Begin a submission in slices; zero rows: its key is being submitted already.
INSERT INTO fillings (key, owner, lease_until, submission)
VALUES (:key, :owner, clock_in(:lease), :submission)
ON CONFLICT (key) DO NOTHING
RETURNING id;

-- name: count_staged
-- Count a slice to its submission.
UPDATE fillings SET jobs = jobs + :jobs WHERE id = :filling;

-- name: drop_slice
-- Drop one slice of a submission.
DELETE FROM filling_jobs
WHERE filling = :filling AND slice = (SELECT min(slice) FROM filling_jobs WHERE filling = :filling);

-- name: end_filling
-- Nothing of this submission is left to be moved or dropped.
DELETE FROM fillings WHERE id = :filling;

-- name: filling_about
-- What the jobs of a submission in slices have in common, and how many have come in.
SELECT submission, jobs, batch FROM fillings WHERE id = :filling;

-- name: filling_by_key
-- The submission in slices that has a key, and whether its lease is over.
SELECT id, batch, lease_until < (SELECT clock()), owner FROM fillings WHERE key = :key;

-- name: first_slice
-- The first slice of a submission that has not been moved yet.
SELECT slice, place, key, hash, limits, payload FROM filling_jobs
WHERE filling = :filling AND slice = (SELECT min(slice) FROM filling_jobs WHERE filling = :filling)
ORDER BY place;

-- name: hold_accepted
-- Lock an accepted submission and renew its lease; zero rows: all its jobs have been moved.
UPDATE fillings SET lease_until = clock_in(:lease) WHERE id = :filling AND batch IS NOT NULL
RETURNING submission, batch;

-- name: hold_filling
-- Renew the lease of a submission that is still coming in; zero rows: it is no longer ours.
UPDATE fillings SET lease_until = clock_in(:lease)
WHERE id = :filling AND owner = :owner AND batch IS NULL
RETURNING id;

-- name: left_fillings
-- Submissions in slices whose lease is over: somebody else must finish or undo them.
SELECT id, batch FROM fillings WHERE lease_until < (SELECT clock()) ORDER BY id;

-- name: slice_is_there
-- Whether a slice has come in already: the answer of its commit may have been lost.
SELECT 1 FROM filling_jobs WHERE filling = :filling AND slice = :slice LIMIT 1;

-- name: still_moving
-- Whether jobs of this batch are still to be moved into it.
SELECT 1 FROM fillings WHERE batch = :batch;

-- name: take_filling
-- Take a submission that was not accepted from its owner, who can add nothing more; zero rows: not ours.
UPDATE fillings SET owner = :owner, lease_until = clock_in(:lease)
WHERE id = :filling AND batch IS NULL AND (owner = :owner OR lease_until < (SELECT clock()))
RETURNING id;
