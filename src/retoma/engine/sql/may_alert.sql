-- Whether any rule could hold, or an alert is open: all that a look asks where nothing happens.
SELECT 1 WHERE EXISTS (SELECT 1 FROM alerts WHERE closed_at IS NULL AND rule >= '')
    OR EXISTS (SELECT 1 FROM jobs WHERE runner > '')
    OR EXISTS (SELECT 1 FROM jobs WHERE queue >= '' AND state = 'waiting'
                 AND turn IS NOT NULL AND aside IS NULL AND lost < 2)
    OR EXISTS (SELECT 1 FROM jobs WHERE queue >= '' AND state = 'waiting'
                 AND turn IS NOT NULL AND aside IS NULL AND lost >= 2)
    OR EXISTS (SELECT 1 FROM jobs WHERE queue >= '' AND state = 'waiting' AND turn IS NULL)
    OR EXISTS (SELECT 1 FROM jobs WHERE state = 'waiting' AND aside IS NOT NULL AND aside >= '')
    OR EXISTS (SELECT 1 FROM counts WHERE batch = -1 AND state = 'parked' AND n > 0)
    OR EXISTS (SELECT 1 FROM tallies)
    OR EXISTS (SELECT 1 FROM (SELECT DISTINCT kind FROM counts WHERE batch = -1) k
               JOIN pace p ON p.kind = k.kind
                AND p.minute >= (SELECT clock_in(-CAST(:seconds AS double precision))))
    OR EXISTS (SELECT 1 FROM runners WHERE state = 'alive' AND trouble IS NOT NULL)
    OR EXISTS (SELECT 1 FROM breakers WHERE state <> 'closed')
    OR EXISTS (SELECT 1 FROM budgets
               WHERE scope IN ('application', 'provider') AND shut IS NOT NULL);
