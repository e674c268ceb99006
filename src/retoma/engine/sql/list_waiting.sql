-- Waiting jobs where few wait, newest first: found by the indices of claims, whatever has ended.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH waiting AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2 AND queue >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2 AND queue >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NULL AND queue >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND aside >= ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
)
SELECT DISTINCT id FROM waiting ORDER BY id DESC LIMIT :limit;
