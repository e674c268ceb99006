-- Renew the lease of one runner, and through it of every job it holds. Zero rows: this boot is over.
-- Who could not beat for a whole lease was deaf, whether he knows it or not: he is in touch since now.
UPDATE runners SET beat_at = (SELECT clock()), lease_until = clock_in(:lease), trouble = :trouble,
    since = CASE WHEN :reconnected = 1 OR lease_until < (SELECT clock()) THEN (SELECT clock())
                 ELSE since END
WHERE boot = :boot AND state IN ('alive', 'leaving')
RETURNING CASE WHEN drain_at IS NULL THEN 0 ELSE 1 END;
