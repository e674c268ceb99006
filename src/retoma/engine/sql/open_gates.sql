-- Gates that hold jobs although they have room for some, and for how many. Reads a row for each gate.
WITH RECURSIVE gates (gate) AS (
    SELECT min(aside) FROM jobs WHERE state = 'waiting' AND aside IS NOT NULL AND aside >= ''
    UNION ALL
    SELECT (SELECT min(j.aside) FROM jobs j
            WHERE j.state = 'waiting' AND j.aside IS NOT NULL AND j.aside > gates.gate)
    FROM gates WHERE gates.gate IS NOT NULL
), rooms AS (
    SELECT gate, CASE
        WHEN gate LIKE 'limit:%' THEN coalesce((
            SELECT coalesce(by_hand, cap) - used FROM limits WHERE key = substr(gate, 7)), :bite)
        WHEN gate LIKE 'batch:%' THEN (
            SELECT CASE WHEN count(*) = 0 THEN :bite END FROM batches
            WHERE id = CAST(substr(gate, 7) AS bigint) AND paused_at IS NOT NULL)
        END AS room
    FROM gates WHERE gate IS NOT NULL
)
SELECT gate, room FROM rooms WHERE room > 0;
