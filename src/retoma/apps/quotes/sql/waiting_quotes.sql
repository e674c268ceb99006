-- Jobs of quotes that wait, begun before or not, the newest first: by the indices of what waits, whatever has ended.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH waiting AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
    UNION ALL
    SELECT id FROM jobs
    WHERE queue = 'quotes.quote' AND state = 'waiting' AND turn IS NULL
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND aside >= ''
      AND kind = 'quotes.quote' AND (started_at IS NOT NULL) = CAST(:begun AS boolean)
      AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
)
SELECT DISTINCT id FROM waiting
WHERE CAST(:before AS bigint) IS NULL OR id < :before
ORDER BY id DESC LIMIT :n;
