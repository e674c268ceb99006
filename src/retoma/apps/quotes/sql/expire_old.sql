-- Quotes begun long ago that nobody holds: their time is over now, and their next claim buries them.
-- Compare and set on the state, the epoch stays: one that a runner holds is not touched. Reads what waits in
-- their queue, suspects too, by its indices, and no history.
UPDATE jobs SET deadline = (SELECT clock()), run_at = (SELECT clock())
WHERE id IN (
    SELECT id FROM jobs WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NULL
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2)
  AND kind = 'quotes.quote' AND state = 'waiting' AND aside IS NULL AND deadline IS NULL
  AND started_at < clock_in(-CAST(:seconds AS double precision))
RETURNING id, epoch;
