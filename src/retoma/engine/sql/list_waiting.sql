-- Waiting jobs where few wait, newest first: found by the indices of claims, whatever has ended.
SELECT id, kind, version, queue, batch, key, generation, state, reason, code, priority, run_at,
       turn, aside, epoch, runner, failures, lost, checkpoint, progress, note, progress_at,
       cancel_at, correlation, payload, result, created_at, started_at, ended_at, discarded_at
FROM jobs
WHERE id IN (
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost < 2
    UNION ALL
    SELECT id FROM jobs
    WHERE state = 'waiting' AND turn IS NOT NULL AND aside IS NULL AND lost >= 2
    UNION ALL
    SELECT id FROM jobs WHERE state = 'waiting' AND turn IS NULL
    UNION ALL
    SELECT id FROM jobs WHERE state = 'waiting' AND aside IS NOT NULL)
  AND (CAST(:before AS bigint) IS NULL OR id < :before)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
ORDER BY id DESC LIMIT :limit;
