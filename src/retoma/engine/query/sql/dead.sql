-- name: list_dead
-- Dead letters that nobody has put away, newest first, by their own index.
SELECT id, kind, version, queue, batch, key, generation, state, reason, code, priority, run_at,
       turn IS NOT NULL AS due, aside, epoch, runner, failures, lost, checkpoint, progress, note, progress_at,
       cancel_at, correlation, payload, result, created_at, started_at, ended_at, discarded_at
FROM jobs
WHERE state = 'dead' AND discarded_at IS NULL
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
  AND (CAST(:code AS text) IS NULL OR code = :code)
ORDER BY id DESC LIMIT :limit;
