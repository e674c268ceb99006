-- Jobs that runners hold, newest first: as many are looked at as there are slots in use.
SELECT id, kind, version, queue, batch, key, generation, state, reason, code, priority, run_at,
       turn, aside, epoch, runner, failures, lost, checkpoint, progress, note, progress_at,
       cancel_at, correlation, payload, result, created_at, started_at, ended_at, discarded_at
FROM jobs
WHERE runner IS NOT NULL
  AND (CAST(:before AS bigint) IS NULL OR id < :before)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
ORDER BY id DESC LIMIT :limit;
