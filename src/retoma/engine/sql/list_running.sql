-- Jobs that runners hold, newest first: as many are looked at as there are slots in use.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH held AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE runner > ''
      AND (CAST(:before AS bigint) IS NULL OR id < :before)
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
)
SELECT DISTINCT id FROM held ORDER BY id DESC LIMIT :limit;
