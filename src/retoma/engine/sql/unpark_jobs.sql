-- Parked jobs wait their turn again, as if submitted now.
-- Compare and set on their state; their epoch stays.
-- IS TRUE keeps an index of states out of it: they are found by their ids.
UPDATE jobs SET state = 'waiting', seq = jobs.seq + 1, reason = NULL, code = NULL,
    run_at = (SELECT clock()), turn = coalesce((
    SELECT min(w.turn) FROM jobs w
    WHERE w.queue = jobs.queue AND w.priority = jobs.priority AND w.state = 'waiting'
      AND w.turn IS NOT NULL AND w.aside IS NULL AND w.lost < 2), 0)
        + CAST(CAST(o.value AS text) AS bigint)
FROM json_each(:jobs) o
WHERE jobs.id = CAST(o.key AS bigint) AND (jobs.state = 'parked') IS TRUE
RETURNING id;
