-- The job that has a key.
SELECT id FROM jobs WHERE kind = :kind AND key = :key;
