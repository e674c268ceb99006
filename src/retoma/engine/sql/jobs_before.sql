-- How many stand before a place in line, up to a bound: nobody counts a long queue to its end.
SELECT count(*) FROM (
    SELECT 1 FROM jobs
    WHERE queue = :queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
      AND (priority, turn, id) < (:priority, CAST(:turn AS bigint), CAST(:job AS bigint))
    LIMIT :bound) before_it;
