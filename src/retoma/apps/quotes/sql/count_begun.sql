-- How many quotes of a lote were begun and wait again; and how many are parked and were never begun.
-- Reads the jobs of this lote alone, which lie beside each other, however many others wait.
SELECT (SELECT count(*) FROM jobs
        WHERE id BETWEEN (SELECT first_job FROM batches WHERE id = :lote)
                     AND (SELECT last_job FROM batches WHERE id = :lote)
          AND batch = :lote AND state = 'waiting' AND started_at IS NOT NULL),
       (SELECT count(*) FROM jobs WHERE batch = :lote AND state = 'parked'
            AND state IN ('parked', 'skipped', 'dead', 'canceled') AND started_at IS NULL);
