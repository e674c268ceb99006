-- Ask for the end of running jobs, once. Their epoch stays: the holder settles them, or the taking back.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET cancel_at = (SELECT clock()), seq = seq + 1
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o)
  AND (state = 'running') IS TRUE AND cancel_at IS NULL
RETURNING id, runner;
