-- Put dead letters away, each once. Compare and set on their state; their epoch stays, and so does all else.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET discarded_at = (SELECT clock()), seq = seq + 1
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND (state = 'dead') IS TRUE
  AND discarded_at IS NULL
RETURNING id;
