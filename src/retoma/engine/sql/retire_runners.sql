-- Delete the rows of runners that ended long ago and hold nothing.
DELETE FROM runners
WHERE boot IN (
    SELECT r.boot FROM runners r
    WHERE r.state IN ('gone', 'lost') AND r.beat_at < :runners_before
      AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.runner = r.boot)
    LIMIT :bite)
RETURNING boot;
