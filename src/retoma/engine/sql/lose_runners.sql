-- Declare runners lost whose lease is over, a few at a time; only one who was not deaf itself may.
-- Deaf is also who has not beaten since: its own lease is over too.
UPDATE runners SET state = 'lost'
WHERE state IN ('alive', 'leaving') AND boot IN (
    SELECT r.boot FROM runners r
    WHERE r.state IN ('alive', 'leaving') AND r.lease_until < (SELECT clock())
      AND r.boot <> :boot
    ORDER BY r.lease_until LIMIT 5)
  AND (SELECT me.since FROM runners me WHERE me.boot = :boot AND me.state = 'alive'
          AND me.lease_until >= (SELECT clock())) <= clock_in(-:lease)
RETURNING boot, name;
