-- Cancel jobs nobody holds. Compare and set on the state somebody saw; their epoch stays.
-- One that waits for remote work is not ended so: that work must be stopped first (stop_remote.sql).
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET state = 'canceled', seq = seq + 1, cancel_at = (SELECT clock()),
    ended_at = (SELECT clock()), turn = NULL, aside = NULL, reason = NULL, code = NULL
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND (state = :was) IS TRUE
  AND (state = 'parked' OR NOT EXISTS (
      SELECT 1 FROM steps s
      WHERE s.job = jobs.id AND s.name >= 'remote:' AND s.name < 'remote;'
        AND s.state IN ('begun', 'saved')))
RETURNING id;
