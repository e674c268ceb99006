-- name: declare_limits_per
-- How many each of the limits lets run whose keys lie between these two.
UPDATE limits SET cap = :cap WHERE key >= :first AND key < :after AND cap <> :cap;

-- name: get_batch
-- One batch.
SELECT id, name, kind, created_at FROM batches WHERE id = :batch;

-- name: open_gates
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
        WHEN gate LIKE 'pool:%' THEN (
            SELECT count(*) FROM pool_items i JOIN pools p ON p.name = i.pool
            WHERE i.pool = substr(gate, 6) AND i.state = 'on'
              AND (p.use_cap IS NULL OR i.uses < p.use_cap)
              AND (i.ready_at IS NULL OR i.ready_at <= (SELECT clock()))
              AND (i.job IS NULL
                   OR i.scope = 'attempt' AND NOT EXISTS (
                       SELECT 1 FROM jobs j
                       WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
                   OR i.scope = 'job' AND NOT EXISTS (
                       SELECT 1 FROM jobs j
                       WHERE j.id = i.job AND j.generation = i.generation
                         AND j.state IN ('waiting', 'running', 'parked'))))
        WHEN gate LIKE 'budget:%' THEN coalesce((
            SELECT CASE WHEN b.shut IS NULL OR b.shut_until <= (SELECT clock()) THEN :bite ELSE 0 END
            FROM budgets b WHERE b.gate = gates.gate), :bite)
        WHEN gate LIKE 'breaker:%' THEN coalesce((
            SELECT CASE WHEN b.state = 'closed' THEN :bite
                        WHEN b.probe_at <= (SELECT clock()) THEN 1 ELSE 0 END
            FROM breakers b WHERE b.name = substr(gate, 9)), :bite)
        END AS room
    FROM gates WHERE gate IS NOT NULL
)
SELECT gate, room FROM rooms WHERE room > 0;

-- name: pause_batch
-- From now on claims set aside what they meet of a batch. Zero rows: it is paused already, or not there.
UPDATE batches SET paused_at = (SELECT clock()) WHERE id = :batch AND paused_at IS NULL
RETURNING name;

-- name: set_limit
-- A person says how many may run: it holds over what the code says. The room there is now.
INSERT INTO limits (key, cap, by_hand) VALUES (:key, :cap, :cap)
ON CONFLICT (key) DO UPDATE SET by_hand = excluded.by_hand
RETURNING coalesce(by_hand, cap) - used;

-- name: unpause_batch
-- A batch may go on. Zero rows: it is not paused, or not there.
UPDATE batches SET paused_at = NULL WHERE id = :batch AND paused_at IS NOT NULL
RETURNING name;

-- name: unset_limit
-- What the code says holds again. The room there is now; zero rows: there is no such limit.
UPDATE limits SET by_hand = NULL WHERE key = :key
RETURNING cap - used;
