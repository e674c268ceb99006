-- Look at one job, gates or not, and hold it until it is decided whether it may run.
-- Twin: the row is locked here, and passed over where another runner holds it; SQLite has one writer.
SELECT id, lost >= 2, batch, limit_key, kind || '@' || version, epoch > 0 FROM jobs
WHERE id = :job AND queue = :queue AND state = 'waiting' AND turn IS NOT NULL AND aside IS NULL
  AND kind || '@' || version = ANY(ARRAY(SELECT json_array_elements_text(CAST(:knows AS json))))
  AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'
  AND NOT EXISTS (SELECT FROM pauses p
                  WHERE p.scope = 'queue' AND p.name = jobs.queue
                     OR p.scope = 'kind' AND p.name = jobs.kind
                     OR p.scope = 'application' AND p.name = (
                         SELECT k.application FROM kinds k WHERE k.name = jobs.kind))
FOR UPDATE SKIP LOCKED;
