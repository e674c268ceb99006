-- Cancel a job nobody holds. Compare and set on the state somebody saw; its epoch stays.
-- One that waits for remote work is not ended so: that work must be stopped first (stop_remote.sql).
UPDATE jobs SET state = 'canceled', seq = seq + 1, cancel_at = (SELECT clock()),
    ended_at = (SELECT clock()), turn = NULL, aside = NULL, reason = NULL, code = NULL
WHERE id = :job AND state = :was AND (state = 'parked' OR NOT EXISTS (
    SELECT 1 FROM steps s
    WHERE s.job = jobs.id AND s.name >= 'remote:' AND s.name < 'remote;'
      AND s.state IN ('begun', 'saved')))
RETURNING id, seq, batch, kind;
