-- Quotes that began long ago and are parked: their time is over once they wait again.
-- Their next claim buries them. Compare and set on the state, the epoch stays.
UPDATE jobs SET deadline = (SELECT clock())
WHERE id IN (
    SELECT id FROM jobs
    WHERE kind = 'quotes.quote' AND state = 'parked' AND state IN ('parked', 'skipped', 'dead', 'canceled')
      AND deadline IS NULL AND started_at < clock_in(-CAST(:seconds AS double precision))
    ORDER BY id LIMIT :n)
  AND state = 'parked' AND deadline IS NULL
RETURNING id, epoch;
