-- Let jobs stand in line again that a gate had set aside, as many as fit. No move: they wait as before.
-- The epoch stays: nobody holds a waiting job. Compare and set on the gate.
UPDATE jobs SET aside = NULL
WHERE aside = :gate AND state = 'waiting' AND id IN (
    SELECT id FROM jobs WHERE aside = :gate AND state = 'waiting'
    ORDER BY priority, turn, id LIMIT :n)
RETURNING id, queue;
