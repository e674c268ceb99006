-- Jobs nobody holds end without being done. Compare and set on the state somebody saw; their epoch stays.
-- One that waits for remote work is not ended so, unless :anyway: nobody would stop that work.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET state = 'skipped', seq = seq + 1, ended_at = (SELECT clock()), turn = NULL,
    aside = NULL, reason = NULL, code = NULL
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o) AND (state = :was) IS TRUE
  AND (CAST(:anyway AS integer) = 1 OR NOT EXISTS (
      SELECT 1 FROM steps s
      WHERE s.job = jobs.id AND s.name >= 'remote:' AND s.name < 'remote;'
        AND s.state IN ('begun', 'saved')))
RETURNING id;
