-- The submission in slices that has a key, and whether its lease is over.
SELECT id, batch, lease_until < (SELECT clock()), owner FROM fillings WHERE key = :key;
