-- How many quotes of a lote were begun and wait again; and how many are parked and were never begun.
-- Reads what waits and what is parked, by their indices, and no history.
SELECT count(DISTINCT id),
       (SELECT count(*) FROM jobs WHERE batch = :lote AND state = 'parked'
            AND state IN ('parked', 'skipped', 'dead', 'canceled') AND started_at IS NULL)
FROM (
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
      AND batch = :lote AND started_at IS NOT NULL
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
      AND batch = :lote AND started_at IS NOT NULL
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NULL
      AND batch = :lote AND started_at IS NOT NULL
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND aside >= '' AND batch = :lote AND started_at IS NOT NULL
) waiting;
