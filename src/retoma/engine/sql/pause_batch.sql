-- From now on claims set aside what they meet of a batch. Zero rows: it is paused already, or not there.
UPDATE batches SET paused_at = (SELECT clock()) WHERE id = :batch AND paused_at IS NULL
RETURNING name;
