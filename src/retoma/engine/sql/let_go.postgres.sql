-- Let go of things, each by whoever holds it: its job, by this epoch where the hold is an attempt's.
-- Twin: rows are locked one by one here, always in the same order; SQLite has one writer.
-- The runner's right to each job and its epoch was checked in this transaction.
-- What works has no failures. What fails again in the same hands, or in those of a kind, that nothing
-- else of the pool has worked for meanwhile, has no more than before: that is not the thing's fault.
WITH sent AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS t(item bigint, job bigint,
        epoch integer, worked integer, by text, kind text, used integer)
), mine AS MATERIALIZED (
    SELECT id FROM pool_items WHERE id = ANY(ARRAY(SELECT item FROM sent)) ORDER BY id FOR UPDATE
)
UPDATE pool_items i SET job = NULL, epoch = NULL, generation = NULL, scope = NULL,
    uses = i.uses - CASE WHEN s.used = 1 THEN 0 ELSE 1 END,
    ready_at = CASE WHEN s.used = 1 AND p.cool_down > 0 THEN clock_in(p.cool_down) END,
    failures = CASE
        WHEN s.worked IS NULL THEN i.failures
        WHEN s.worked = 1 THEN 0
        WHEN i.failures > 0 AND (i.failed_by = s.by AND (s.kind IS NOT NULL OR NOT EXISTS (
            SELECT 1 FROM pool_items o
            WHERE o.pool = i.pool AND o.id <> i.id AND o.worked_by = s.by
              AND o.worked_at >= i.failed_from))
          OR s.kind IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM pool_items o
            WHERE o.pool = i.pool AND o.id <> i.id AND o.worked_by = s.kind
              AND o.worked_at >= i.failed_from)) THEN i.failures
        ELSE i.failures + 1 END,
    failed_by = CASE WHEN s.worked IS NULL THEN i.failed_by WHEN s.worked = 0 THEN s.by END,
    failed_from = CASE WHEN s.worked IS NULL THEN i.failed_from
                       WHEN s.worked = 0 THEN coalesce(i.failed_from, (SELECT clock())) END,
    failed_at = CASE WHEN s.worked IS NULL THEN i.failed_at WHEN s.worked = 0 THEN (SELECT clock()) END,
    worked_by = CASE WHEN s.worked = 1 THEN coalesce(s.kind, s.by) ELSE i.worked_by END,
    worked_at = CASE WHEN s.worked = 1 THEN (SELECT clock()) ELSE i.worked_at END,
    score = CASE WHEN s.worked IS NULL THEN i.score ELSE 0.8 * i.score + 0.2 * s.worked END
FROM mine m JOIN sent s ON s.item = m.id, pools p
WHERE i.id = m.id AND p.name = i.pool
  AND i.job = s.job AND (i.scope <> 'attempt' OR i.epoch = s.epoch)
RETURNING i.id, coalesce(i.failures >= p.off_after, false);
