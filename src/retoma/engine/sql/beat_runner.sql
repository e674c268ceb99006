-- Renew the lease of one runner, and through it of every job it holds. Zero rows: this boot is over.
UPDATE runners SET beat_at = (SELECT clock()), lease_until = clock_in(:lease),
    since = CASE WHEN :reconnected = 1 THEN (SELECT clock()) ELSE since END
WHERE boot = :boot AND state IN ('alive', 'leaving')
RETURNING boot;
